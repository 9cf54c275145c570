// `npm run build:deb [-- --revision N --out DIRECTORY --compression xz|gzip|none]`: builds the Debian package berth for this processor, dist/berth_<version>_<processor>.deb.
// The same source makes the same bytes: dates are those of the commit (or SOURCE_DATE_EPOCH). Tests use less compression,
// which takes a minute.

import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { writeDebTree } from './deb/deb-tree.ts';
import { needDashboard } from './package/dashboard-built.ts';
import { projectRoot } from './package/program-tree.ts';

needDashboard(projectRoot, 'build:deb');
const startedAtMs = performance.now();
const { values } = parseArgs({
  options: {
    revision: { type: 'string', default: '1' },
    out: { type: 'string', default: join(projectRoot, 'dist') },
    compression: { type: 'string', default: 'xz' },
  },
});
const { version: upstream }: { version: string } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));
const epochS = Number(process.env.SOURCE_DATE_EPOCH ?? commitTimeS());
const out = resolve(values.out);
mkdirSync(out, { recursive: true });
const root = mkdtempSync(join(tmpdir(), 'berth-deb-'));
try {
  await writeDebTree(root, { upstream, debian: `${upstream}-${values.revision}`, epochS });
  const fastGzip = values.compression === 'gzip' ? ['-z1'] : [];
  const words = ['--root-owner-group', `-Z${values.compression}`, ...fastGzip, '--build', root, out];
  execFileSync('dpkg-deb', words, {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(epochS) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
} finally {
  rmSync(root, { recursive: true });
}
const architecture = execFileSync('dpkg', ['--print-architecture'], { encoding: 'utf8' }).trim();
const path = join(out, `berth_${upstream}-${values.revision}_${architecture}.deb`);
const sizeKiB = Math.round(statSync(path).size / 1024);
console.log(`${path}  ${sizeKiB} KiB  in ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`);

/** Outside of a checkout there is no commit: then the date of the change log. */
function commitTimeS(): number {
  try {
    return Number(execFileSync('git', ['log', '-1', '--format=%ct'], { cwd: projectRoot, encoding: 'utf8' }));
  } catch {
    return Math.floor(statSync(join(projectRoot, 'CHANGELOG.md')).mtimeMs / 1000);
  }
}
