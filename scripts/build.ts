// `npm run build`: bundles src/main.ts into dist/, an npm package of its own, and packs it as dist/berth-<version>.tgz. Only native
// packages stay outside the bundle. The Node that npm brings to a checkout comes with it on Linux, for that of
// Debian 12 and 13 is too old.

import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { needDashboard } from './package/dashboard-built.ts';
import { native, projectRoot, writeProgram } from './package/program-tree.ts';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

const dist = join(projectRoot, 'dist');
needDashboard(projectRoot, 'build');
const startedAtMs = performance.now();
const manifest: Manifest = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));

rmSync(dist, { recursive: true, force: true });
await writeProgram(dist, { sourcemap: true });
for (const name of ['README.md', 'LICENSE', 'examples', 'packaging']) {
  if (existsSync(join(projectRoot, name))) cpSync(join(projectRoot, name), join(dist, name), { recursive: true });
}
writeFileSync(
  join(dist, 'package.json'),
  `${JSON.stringify(
    {
      name: manifest.name,
      version: manifest.version,
      description: manifest.description,
      license: manifest.license,
      type: 'module',
      bin: { berth: 'bin/berth.js' },
      engines: { node: '>=18' }, // to find another: bin/node-needed.js
      dependencies: Object.fromEntries(native.map((name) => [name, manifest.dependencies[name]])),
      optionalDependencies: manifest.optionalDependencies,
    },
    null,
    2,
  )}\n`,
);

const archive = execFileSync('npm', ['pack', '--silent', '--ignore-scripts'], { cwd: dist, encoding: 'utf8' }).trim();
const sizeKiB = Math.round(statSync(join(dist, archive)).size / 1024);
console.log(`dist/${archive}  ${sizeKiB} KiB  in ${((performance.now() - startedAtMs) / 1000).toFixed(1)} s`);
console.log(`npm install -g ./dist/${archive}`);
