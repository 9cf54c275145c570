// The program as packages carry it: src/main.ts and what it loads in one bundle, with the dashboard and the API page beside it. Only native
// packages stay outside the bundle.

import { copyFileSync, cpSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

/** Packages with machine code, which no bundler can take in. */
export const native = ['better-sqlite3'];

export const projectRoot = fileURLToPath(new URL('../..', import.meta.url));

/**
 * Writes the program to `directory`, where `bin/berth.js` starts it. Returns the npm packages that are in the bundle, by their folders. The
 * dashboard must have been built.
 */
export async function writeProgram(
  directory: string,
  { sourcemap }: { readonly sourcemap: boolean },
): Promise<readonly string[]> {
  mkdirSync(join(directory, 'bin'), { recursive: true });
  const { metafile } = await build({
    entryPoints: {
      main: join(projectRoot, 'src/main.ts'),
      'sqlite-thread': join(projectRoot, 'src/store/sqlite/sqlite-thread.ts'), // loaded by its name: sqlite-store.ts
      'seed-worker': join(projectRoot, 'src/sim/batch/seed-worker.ts'), // likewise: seed-pool.ts
    },
    outdir: directory,
    bundle: true,
    splitting: true, // each command loads its own part only, so that `berth ps` starts fast
    chunkNames: 'chunks/[name]-[hash]',
    format: 'esm',
    platform: 'node',
    target: 'node22.23',
    external: native,
    // Its modules, not its CommonJS: a lazy import of that would bring no names.
    alias: { yaml: join(projectRoot, 'node_modules/yaml/browser/index.js') },
    absWorkingDir: projectRoot,
    sourcemap,
    sourcesContent: false,
    legalComments: 'linked',
    logLevel: 'warning',
    metafile: true,
    // CommonJS packages inside an ES module still call require for Node's own modules.
    banner: {
      js: `import { createRequire as berthCreateRequire } from 'node:module';const require = berthCreateRequire(import.meta.url);`,
    },
  });
  for (const name of ['swagger-ui-bundle.js', 'swagger-ui.css', 'LICENSE', 'NOTICE'])
    cpSync(join(projectRoot, 'node_modules/swagger-ui-dist', name), join(directory, 'swagger-ui', name)); // docs-files.ts
  cpSync(join(projectRoot, 'web/dist'), join(directory, 'web'), { recursive: true }); // web-files.ts
  for (const name of ['berth.js', 'node-needed.js'])
    copyFileSync(join(projectRoot, 'bin', name), join(directory, 'bin', name));
  const folders = Object.keys(metafile.inputs).flatMap(
    (path) => /^(?:.*\/)?node_modules\/(?:@[^/]+\/)?[^/]+/.exec(path)?.[0] ?? [],
  );
  return [...new Set(folders)].toSorted();
}
