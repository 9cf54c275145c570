// The Debian package as Debian's own checker sees it, and that the same source makes the same bytes.

import { execFileSync, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const project = resolve(import.meta.dirname, '../..');

describe('the Debian package', () => {
  let directory: string;
  let paths: readonly string[];
  beforeAll(() => {
    directory = mkdtempSync(join(tmpdir(), 'berth-package-'));
    paths = ['first', 'second'].map((name) => {
      const out = join(directory, name);
      const words = ['scripts/build-deb.ts', '--compression', 'gzip', '--out', out];
      execFileSync(process.execPath, words, { cwd: project, stdio: ['ignore', 'ignore', 'inherit'] });
      return join(out, readdirSync(out)[0] ?? '');
    });
  });
  afterAll(() => rmSync(directory, { recursive: true, force: true }));

  it('has no error and no warning of lintian that is not overridden with a reason', () => {
    const words = ['--allow-root', '--fail-on', 'error,warning', '--tag-display-limit', '0', paths[0] ?? ''];
    const { stdout, status } = spawnSync('lintian', words, { encoding: 'utf8' });
    expect({ stdout, status }).toEqual({ stdout: '', status: 0 });
  }, 300_000);

  it('has the same bytes when it is built again', () => {
    const [first, second] = paths.map((path) => createHash('sha256').update(readFileSync(path)).digest('hex'));
    expect(second).toBe(first);
  });
});
