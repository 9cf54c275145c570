// `npm run build`: bundles src/main.ts into dist/, an npm package of its own, and packs it as dist/berth-<version>.tgz. Only native
// packages stay outside the bundle. The Node that npm brings to a checkout comes with it on Linux, for that of
// Debian 12 and 13 is too old.

import { execFileSync } from 'node:child_process';
import { copyFileSync, cpSync, existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
}

/** Packages with machine code, which no bundler can take in. */
const native = ['better-sqlite3'];

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'dist');
const startedAtMs = performance.now();
const manifest: Manifest = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'));

rmSync(dist, { recursive: true, force: true });
mkdirSync(join(dist, 'bin'), { recursive: true });
await build({
  entryPoints: {
    main: join(root, 'src/main.ts'),
    'sqlite-thread': join(root, 'src/store/sqlite/sqlite-thread.ts'), // loaded by its name: sqlite-store.ts
    'seed-worker': join(root, 'src/sim/batch/seed-worker.ts'), // likewise: seed-pool.ts
  },
  outdir: dist,
  bundle: true,
  splitting: true, // each command loads its own part only, so that `berth ps` starts fast
  chunkNames: 'chunks/[name]-[hash]',
  format: 'esm',
  platform: 'node',
  target: 'node22.23',
  external: native,
  // Its modules, not its CommonJS: a lazy import of that would bring no names.
  alias: { yaml: join(root, 'node_modules/yaml/browser/index.js') },
  sourcemap: true,
  sourcesContent: false,
  legalComments: 'linked',
  logLevel: 'warning',
  // CommonJS packages inside an ES module still call require for Node's own modules.
  banner: {
    js: `import { createRequire as berthCreateRequire } from 'node:module';const require = berthCreateRequire(import.meta.url);`,
  },
});

for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css', 'LICENSE', 'NOTICE'])
  cpSync(join(root, 'node_modules/swagger-ui-dist', name), join(dist, 'swagger-ui', name)); // docs-files.ts
cpSync(join(root, 'web/dist'), join(dist, 'web'), { recursive: true }); // web-files.ts; npm run builds it before
for (const name of ['berth.js', 'node-needed.js']) copyFileSync(join(root, 'bin', name), join(dist, 'bin', name));
for (const name of ['README.md', 'LICENSE', 'examples', 'packaging']) {
  if (existsSync(join(root, name))) cpSync(join(root, name), join(dist, name), { recursive: true });
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
