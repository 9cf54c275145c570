// What `npm run build` makes: installed by npm in an empty place, it must run by itself, without this checkout.

import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, expect, it } from 'vitest';

const project = fileURLToPath(new URL('..', import.meta.url));
let directory: string;
let berth: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-product-'));
  execFileSync(process.execPath, [join(project, 'scripts/build.ts')], { stdio: 'ignore' });
  const { version } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'));
  const archive = join(project, `dist/berth-${version}.tgz`);
  execFileSync('npm', ['install', '--global', '--prefix', directory, '--silent', '--no-audit', '--no-fund', archive], {
    cwd: directory,
    stdio: 'inherit',
  });
  berth = join(directory, 'bin/berth');
});
afterAll(() => rm(directory, { recursive: true, force: true }));

it('tells its version, and it is that of package.json', async () => {
  const { version } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'));
  expect(execFileSync(process.execPath, [berth, '--version'], { encoding: 'utf8' })).toContain(version);
});

it('serves from a YAML file and answers its own command line in YAML', async () => {
  const config = join(directory, 'server.yaml');
  await writeFile(config, `listen: 127.0.0.1:0\ndataDirectory: ${join(directory, 'data')}\n`);
  const server = spawn(process.execPath, [berth, 'server', '--config', config], {
    cwd: directory, // in a checkout it would take the example of an image map
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    const url = await new Promise<string>((resolve, reject) => {
      let said = '';
      server.stderr.on('data', (bytes: Buffer) => {
        said += bytes.toString();
        const listens = /listens on (\S+)/.exec(said)?.[1];
        if (listens !== undefined) resolve(listens);
      });
      server.once('exit', () => reject(new Error(said)));
    });
    // In the same process, with the memory that suits a server.
    const commandLine = await readFile(`/proc/${server.pid}/cmdline`, 'utf8');
    expect(commandLine).toContain('--max-semi-space-size=32');
    expect(commandLine).toContain('--heap-growing-percent=100');
    const token = (await readFile(join(directory, 'data/operator.token'), 'utf8')).trim();
    const run = (...words: string[]): string =>
      execFileSync(process.execPath, [berth, ...words], {
        encoding: 'utf8',
        env: { ...process.env, BERTH_URL: url, BERTH_TOKEN: token, BERTH_CONFIG: join(directory, 'contexts.yaml') },
      });
    run('size', 'create', 'small', '--cpus', '1', '--memory', '1GiB');
    expect(run('size', 'ls', '-o', 'yaml')).toContain('memoryMiB: 1024');
    expect(JSON.parse(run('ps', '-o', 'json'))).toEqual([]);
    expect(JSON.parse(run('audit', '--older-than', '0s', '-o', 'json'))).toMatchObject({ findings: [] });
  } finally {
    const exited = once(server, 'exit');
    server.kill('SIGTERM');
    await exited;
  }
});
