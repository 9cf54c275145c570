// The `berth` that people call, as a process of its own: each word of a command line must reach it, and none may reach its Node.

import { spawn } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { testInstance } from '../src/cli/testing.ts';

const program = fileURLToPath(new URL('../bin/berth.js', import.meta.url));
let folder: string;
let server: Server;
let url: string;
let bodies: unknown[];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'berth-program-'));
  symlinkSync(program, join(folder, 'berth')); // as npm puts it into node_modules/.bin, where npx finds it
  server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      if (parts.length > 0) bodies.push(JSON.parse(Buffer.concat(parts).toString()));
      const images = request.url?.startsWith('/v1/images') === true;
      const answer = images ? { error: { code: 'NotFound', message: 'no such image' } } : testInstance('web');
      response.writeHead(images ? 404 : 201, { 'content-type': 'application/json' }).end(JSON.stringify(answer));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`; // listens on TCP
});
beforeEach(() => {
  bodies = [];
});
afterAll(() => {
  server.close();
  rmSync(folder, { recursive: true });
});

interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** `file` with `words`, on the Node of this test as the first in PATH. */
async function call(
  file: string,
  words: readonly string[],
  { stdin = '', environment = {} }: { stdin?: string; environment?: Record<string, string> } = {},
): Promise<Ended> {
  const child = spawn(file, [...words], {
    cwd: folder,
    env: {
      ...process.env,
      PATH: [dirname(process.execPath), process.env['PATH']].join(delimiter),
      BERTH_URL: url,
      BERTH_TOKEN: 'secret',
      ...environment,
    },
  });
  const said = { stdout: '', stderr: '' };
  child.stdout.on('data', (bytes: Buffer) => (said.stdout += bytes.toString()));
  child.stderr.on('data', (bytes: Buffer) => (said.stderr += bytes.toString()));
  child.stdin.on('error', () => {}); // it may end before it reads
  child.stdin.end(stdin);
  const code = await new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return { code, ...said };
}

/** Makes bin/berth.js hand over to the Node that npm brought, as it does on a Node that is too old. */
const old = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'20'.concat('.0.0')}})`;
const waysIn: readonly { way: string; file: () => string; environment: Record<string, string> }[] = [
  { way: 'by its own first line', file: () => program, environment: {} },
  { way: 'by a link, as npx does', file: () => join(folder, 'berth'), environment: {} },
  { way: 'on a Node that is too old', file: () => program, environment: { NODE_OPTIONS: `--import=${old}` } },
];

describe.each(waysIn)('called $way', ({ file, environment }) => {
  it('reads the environment of a container from standard input', async () => {
    const words = ['run', 'shop', '--env-file', '-'];
    const ended = await call(file(), words, { stdin: 'A=b\n', environment });
    expect(ended).toEqual({ code: 0, stdout: 'web\n', stderr: '' });
    expect(bodies).toMatchObject([{ spec: { image: 'shop', containers: [{ env: { A: 'b' } }] } }]);
  });

  it('says itself that a file of variables is not there', async () => {
    const { code, stderr } = await call(file(), ['run', 'shop', '--env-file', '/nope'], { environment });
    expect(stderr).toMatch(/^berth: /);
    expect(stderr).toContain('/nope');
    expect(code).toBe(2);
    expect(bodies).toEqual([]);
  });

  it('keeps the variables of a container from its own Node', async () => {
    writeFileSync(join(folder, 'env'), 'NODE_OPTIONS=--nope\n');
    const ended = await call(file(), ['run', 'shop', '--env-file=env'], { environment });
    expect(ended).toEqual({ code: 0, stdout: 'web\n', stderr: '' });
    expect(bodies).toMatchObject([{ spec: { containers: [{ env: { NODE_OPTIONS: '--nope' } }] } }]);
  });

  it('answers itself where it starts Node once more, for a server', async () => {
    const { code, stderr } = await call(file(), ['server', '--env-file', '/nope'], { environment });
    expect(stderr).toContain("unknown option '--env-file'");
    expect(code).toBe(2);
  });

  it('passes words on as they are', async () => {
    const words = ['run', 'shop', '--arg', '-x', '--arg', 'a  b;$c "d" *', '--arg', '', '--env', 'E=--env-file=/nope'];
    expect(await call(file(), words, { environment })).toEqual({ code: 0, stdout: 'web\n', stderr: '' });
    expect(bodies).toMatchObject([
      { spec: { containers: [{ args: ['-x', 'a  b;$c "d" *', ''], env: { E: '--env-file=/nope' } }] } },
    ]);
  });
});

it('is called again by ssh in a way that keeps its words from Node, too', async () => {
  writeFileSync(join(folder, 'ssh'), '#!/bin/sh\nprintf "%s\\n" "$@"\n');
  chmodSync(join(folder, 'ssh'), 0o755);
  const PATH = [folder, dirname(process.execPath), process.env['PATH']].join(delimiter);
  const { stdout, code } = await call(program, ['ssh', 'web'], { environment: { PATH, HOME: folder } });
  expect(stdout).toMatch(/^ProxyCommand=\S+node -- \S+berth.js port-forward --stdio inst_/m);
  expect(code).toBe(0);
});

it('completes what images can be built of', async () => {
  const { stdout } = await call(program, ['complete', '--', 'image', 'build', '']);
  expect(stdout).toMatch(/^tiny\b[^]*^debian-12\b/m);
});
