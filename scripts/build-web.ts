// `npm run build:web`: builds the dashboard into web/dist, with compressed copies beside its files, which the server sends as they are.
// With `--if-stale` it does so only when something changed since.

import { mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { build } from 'vite';

const root = fileURLToPath(new URL('..', import.meta.url));
const dist = join(root, 'web/dist');
const stamp = join(dist, 'index.html');

if (!process.argv.includes('--if-stale') || isStale()) {
  const startedAtMs = performance.now();
  await build({ configFile: join(root, 'web/vite.config.ts'), logLevel: 'warn' });
  const assets = join(dist, 'assets');
  mkdirSync(assets, { recursive: true });
  let bytes = 0;
  for (const name of readdirSync(assets)) {
    if (!/\.(js|css|svg)$/.test(name)) continue;
    const text = readFileSync(join(assets, name));
    const small = brotliCompressSync(text, { params: { [constants.BROTLI_PARAM_QUALITY]: 9 } });
    bytes += small.byteLength;
    writeFileSync(join(assets, `${name}.br`), small);
    writeFileSync(join(assets, `${name}.gz`), gzipSync(text));
  }
  const seconds = ((performance.now() - startedAtMs) / 1000).toFixed(1);
  process.stderr.write(`dashboard: built in ${seconds} s, ${Math.round(bytes / 1000)} kB compressed\n`);
}

/** Whether a source is newer than the build. */
function isStale(): boolean {
  const builtAtMs = statSync(stamp, { throwIfNoEntry: false })?.mtimeMs;
  if (builtAtMs === undefined) return true;
  const sources = [join(root, 'web'), join(root, 'src/api'), join(root, 'src/base'), join(root, 'package-lock.json')];
  return sources.some((path) => newestOf(path) > builtAtMs);
}

function newestOf(path: string): number {
  const found = statSync(path);
  if (!found.isDirectory()) return found.mtimeMs;
  const below = readdirSync(path).filter((name) => name !== 'dist' && name !== 'node_modules');
  return Math.max(found.mtimeMs, ...below.map((name) => newestOf(join(path, name))));
}
