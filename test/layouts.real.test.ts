// Follows the three pages of docs/layouts: each script sets up its fleet in namespaces, and an instance runs where it should.

import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { describe, expect, it } from 'vitest';

const project = join(import.meta.dirname, '..');
const berth = `${process.execPath} ${join(project, 'src/main.ts')}`;
const question = `
  berth run tiny --name web --wait >&2
  berth host ls -o json
  echo
  berth ps -o json`;

describe.each([
  ['seed-cluster', ['build-1', 'build-2']],
  ['plain-hosts', ['build-1', 'build-2']],
  ['co-located', ['build-2']], // the control plane is on build-1
])('%s', (layout, takers) => {
  it('runs an instance, and never beside the control plane', { timeout: 240_000 }, async () => {
    const page = await readFile(join(project, `docs/layouts/${layout}.md`), 'utf8');
    const [, script = ''] = /^\$ (examples\/layouts\/\S+)$/m.exec(page) ?? [];
    const { stdout } = await promisify(execFile)('bash', [join(project, script), 'bash', '-c', question], {
      env: { ...process.env, BERTH: berth, NO_COLOR: '1' },
    });
    const [hosts = '', instances = ''] = stdout.split(/^(?=\[)/m);
    const names = (JSON.parse(hosts) as { metadata: { name: string } }[]).map(({ metadata }) => metadata.name); // of `host ls`
    expect(names.sort()).toEqual(['build-1', 'build-2']);
    const [web] = JSON.parse(instances) as { status: { phase: string; host: string } }[]; // of `ps`
    expect(web?.status.phase).toBe('Running');
    expect(takers).toContain(web?.status.host);
  });
});
