// The API as others see it: its page in a real browser, its description before a linter, and the examples of clients, against a real server.

import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Fleet, startFleet } from './processes.ts';

const run = promisify(execFile);
const root = fileURLToPath(new URL('..', import.meta.url));
const at = (...path: string[]): string => join(root, ...path);

let directory: string;
let fleet: Fleet;
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-page-'));
  fleet = await startFleet(directory, { drivers: ['fake'] });
  await fleet.client.create('image', {
    metadata: { name: 'tiny' },
    spec: { source: 'https://images.example/tiny.qcow2' },
  });
});
afterAll(async () => {
  await fleet?.stop();
  await rm(directory, { recursive: true, force: true });
});

const chromium = '/usr/bin/chromium';
const noBrowser = existsSync(chromium) ? undefined : 'no browser is installed (package chromium)';

describe.skipIf(noBrowser !== undefined)(`the page /docs${noBrowser ? ` (${noBrowser})` : ''}`, () => {
  it('shows every operation, and asks no other server for anything', async () => {
    const { stdout, stderr } = await run(
      chromium,
      [
        ...['--headless', '--no-sandbox', '--disable-gpu', '--no-first-run', '--enable-logging=stderr'],
        `--user-data-dir=${join(directory, 'browser')}`,
        '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1',
        ...['--virtual-time-budget=20000', '--dump-dom', `${fleet.url}/docs`],
      ],
      { maxBuffer: 64 * 1024 * 1024, timeout: 90_000 },
    );
    expect(stdout).toContain('opblock-tag-section');
    expect(stdout).toContain('Berth');
    for (const tag of ['instances', 'hosts', 'jobs']) expect(stdout).toContain(`id="operations-tag-${tag}"`);
    expect(stderr).not.toMatch(/Content Security Policy|Refused to|net::ERR_NAME_NOT_RESOLVED/);
  });

  it('is protected from being framed, and from text that a browser takes for a script', async () => {
    const page = await fetch(`${fleet.url}/docs`);
    expect(page.headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(page.headers.get('x-content-type-options')).toBe('nosniff');
    expect(await page.text()).not.toMatch(/https?:\/\//);
    expect((await fetch(`${fleet.url}/docs/..%2f..%2fpackage.json`)).status).toBe(404);
  });
});

it('the description has no fault that a linter finds', async () => {
  const linted = await run(
    'node',
    [at('node_modules/@redocly/cli/bin/cli.js'), 'lint', '--config', at('redocly.yaml'), at('docs/openapi.json')],
    {
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
    },
  );
  expect(linted.stderr).toContain('valid');
});

it('a client in TypeScript compiles with types made of the description, and runs', async () => {
  const folder = join(directory, 'typescript');
  await mkdir(folder);
  for (const name of ['example.ts', 'tsconfig.json', 'package.json'])
    await cp(at('examples/typescript-client', name), join(folder, name));
  const modules = at('examples/typescript-client/node_modules');
  await run('node', [
    join(modules, 'openapi-typescript/bin/cli.js'),
    ...[`${fleet.url}/openapi.json`, '--default-non-nullable', 'false', '-o', join(folder, 'berth.d.ts')],
  ]);
  await run('ln', ['-s', at('node_modules'), join(folder, 'node_modules')]);
  await run('node', [join(modules, 'typescript/bin/tsc'), '-p', folder]);
  const env = { ...process.env, ...fleet.environment };
  expect((await run('node', [join(folder, 'example.ts')], { env })).stdout).toBe('from-typescript runs\n');
});

it('a client in Python runs with the standard library alone', async () => {
  const env = { PATH: process.env['PATH'], ...fleet.environment };
  const { stdout } = await run('/usr/bin/python3', ['-I', at('examples/python-client/example.py')], { env });
  expect(stdout).toBe('from-python runs\n');
});
