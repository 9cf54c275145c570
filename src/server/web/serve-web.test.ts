// The dashboard as a browser gets it: its page with a nonce of its own, its files for good, and nothing else of the disk.

import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { startTestServer } from '../testing.ts';
import { WebFiles } from './web-files.ts';

let directory: string;
let server: Awaited<ReturnType<typeof startTestServer>>;
const script = `console.log(${JSON.stringify('a'.repeat(500))});`;
const page =
  '<!doctype html><meta name="csp-nonce" nonce="__NONCE__"><script type="module" src="/ui/assets/a-1.js"></script>';

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-web-'));
  await mkdir(join(directory, 'dist', 'assets'), { recursive: true });
  await writeFile(join(directory, 'secret.js'), 'planted');
  await writeFile(join(directory, 'dist', 'index.html'), page);
  await writeFile(join(directory, 'dist', 'assets', 'a-1.js'), script);
  await writeFile(join(directory, 'dist', 'assets', 'a-1.js.br'), brotliCompressSync(script));
  await writeFile(join(directory, 'dist', 'assets', 'a-1.js.gz'), gzipSync(script));
  let count = 0;
  const files = new WebFiles([pathToFileURL(`${join(directory, 'dist')}/`)]);
  server = await startTestServer({ web: { files, newNonce: () => `nonce${count++}` } });
});
afterAll(async () => {
  await server.close();
  await rm(directory, { recursive: true });
});

const get = (path: string, headers: Record<string, string> = {}) => fetch(`${server.url}${path}`, { headers });

describe('the page', () => {
  it.each(['/', '/ui', '/ui/', '/ui/instances/web-1?project=a', '/ui/hosts'])('is at %s', async (path) => {
    const answer = await get(path);
    expect([answer.status, answer.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
    expect(await answer.text()).toContain('/ui/assets/a-1.js');
  });

  it('has a nonce of its own each time, which is in its policy, and is not kept', async () => {
    const seen = await Promise.all(
      ['/', '/'].map(async (path) => {
        const answer = await get(path);
        const [, nonce] = /nonce="([^"]+)"/.exec(await answer.text()) ?? [];
        expect(answer.headers.get('content-security-policy')).toContain(`style-src-elem 'self' 'nonce-${nonce}'`);
        expect(answer.headers.get('content-security-policy')).toMatch(/default-src 'none'; script-src 'self';/);
        expect(answer.headers.get('cache-control')).toBe('no-store');
        return nonce;
      }),
    );
    expect(new Set(seen).size).toBe(2);
  });

  it('leaves the API as it is', async () => {
    expect((await get('/v1/nothing')).headers.get('content-type')).toContain('application/json');
    expect((await get('/uix')).status).toBe(404);
  });
});

describe('a file', () => {
  it.each([
    ['br, gzip', 'br'],
    ['gzip', 'gzip'],
    ['br;q=0, gzip', 'gzip'],
    ['identity', null],
  ])('comes compressed for %s', async (accepts, encoding) => {
    const answer = await get('/ui/assets/a-1.js', { 'accept-encoding': accepts });
    expect(answer.headers.get('content-encoding')).toBe(encoding);
    expect(answer.headers.get('cache-control')).toContain('immutable');
    expect(await answer.text()).toBe(script);
  });

  it('is one of the build, whatever its address says', async () => {
    const names = ['../../secret.js', '..%2f..%2fsecret.js', '%2e%2e/index.html', 'a-1.js.br', 'none.js', 'a-1.js%00'];
    for (const name of names) {
      const answer = await get(`/ui/assets/${name}`);
      expect([name, answer.status === 200 && (await answer.text()).includes('planted')]).toEqual([name, false]);
    }
  });
});

it('says how to build the dashboard where it is missing', async () => {
  const bare = await startTestServer({ web: { files: new WebFiles([]), newNonce: () => 'n' } });
  try {
    expect(await (await fetch(bare.url)).text()).toContain('npm run build:web');
  } finally {
    await bare.close();
  }
});
