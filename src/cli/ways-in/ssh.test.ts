import { execFileSync } from 'node:child_process';
import { mkdtemp, mkdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Handler, page, runBerth, testInstance } from '../testing.ts';

let homeDirectory = '';
let publicKey = '';
const keyPath = (): string => join(homeDirectory, '.ssh', 'work');

beforeAll(async () => {
  homeDirectory = await mkdtemp(join(tmpdir(), 'berth-ssh-'));
  await mkdir(join(homeDirectory, '.ssh'));
  execFileSync('ssh-keygen', ['-q', '-t', 'ed25519', '-N', '', '-f', keyPath()]);
  publicKey = (await readFile(`${keyPath()}.pub`, 'utf8')).trim();
});
afterAll(() => rm(homeDirectory, { recursive: true }));

const imageOf = (name: string, spec: object) => ({
  kind: 'image',
  metadata: { name, labels: {} },
  spec: { source: 'https://example.net/disk.qcow2', format: 'qcow2', nocloud: true, aliases: [], ...spec },
});

/** What ssh or scp was started with. */
async function started(line: string, { image = imageOf('tiny', {}), imageName = 'tiny', key = false } = {}) {
  const web = testInstance('web', { spec: { image: imageName, sshKeys: key ? [publicKey] : [] } });
  const handler: Handler = ({ path }) => {
    if (path === '/v1/instances/web') return { json: web };
    if (path === `/v1/images/${image.metadata.name}`) return { json: image };
    return path === '/v1/images' ? page([image]) : undefined;
  };
  let words: readonly string[] = [];
  const { stderr, exitCode } = await runBerth(line.split(' '), {
    handler,
    homeDirectory,
    onProgram: (_, given) => {
      words = given;
      return 0;
    },
  });
  expect({ stderr, exitCode }).toEqual({ stderr: '', exitCode: 0 });
  const after = (flag: string, prefix = ''): string[] =>
    words.flatMap((word, i) => (words[i - 1] === flag && word.startsWith(prefix) ? [word.slice(prefix.length)] : []));
  return { users: after('-o', 'User='), keys: after('-i'), words };
}

const debian = imageOf('tiny', { defaultUser: 'debian' });

describe('who logs in by ssh', () => {
  it.each([
    ['the default user of the image', debian, 'tiny', 'ssh web', ['debian']],
    [
      'that of an image by its alias',
      imageOf('d', { defaultUser: 'debian', aliases: ['def'] }),
      'def',
      'ssh web',
      ['debian'],
    ],
    ['with exec', debian, 'tiny', 'exec --by ssh -t web -- tty', ['debian']],
    ['with cp', debian, 'tiny', 'cp -l debian ./letter web:/tmp/', ['debian']],
    ['who was named before the instance', debian, 'tiny', 'ssh ann@web', []],
    ['who was named with -l', debian, 'tiny', 'ssh -l ann web', ['ann']],
    ['who was named with exec -l', debian, 'tiny', 'exec --by ssh -l ann web -- id', ['ann']],
    ['who is usual in images of this name', imageOf('ubuntu-24.04', {}), 'ubuntu-24.04', 'ssh web', ['ubuntu']],
    [
      'who is usual in files of this name',
      imageOf('web', { source: 'https://example.net/debian-12.qcow2' }),
      'web',
      'ssh web',
      ['debian'],
    ],
    ['whoever ssh takes, for a container', imageOf('debian', { format: 'container' }), 'debian', 'ssh web', []],
    ['whoever ssh takes, where nothing is known', imageOf('tiny', {}), 'tiny', 'ssh web', []],
  ])('is %s', async (_, image, imageName, line, users) => {
    expect((await started(line, { image, imageName })).users).toEqual(users);
  });

  it('is told once only', async () => {
    const { stderr, exitCode } = await runBerth(['ssh', '-l', 'bob', 'ann@web']);
    expect({ stderr, exitCode }).toEqual({
      stderr: 'berth: the user is named twice: "ann" and "bob"\n  leave out USER@, or --login\n',
      exitCode: 2,
    });
  });
});

describe('with which key', () => {
  it.each(['ssh web', 'exec --by ssh web -- id'])('%s: the one that the instance was given', async (line) => {
    expect((await started(line, { key: true })).keys).toEqual([keyPath()]);
  });

  it.each(['ssh -i other web', 'exec --by ssh --identity other web -- id'])(
    '%s: the one that was named',
    async (line) => {
      expect((await started(line, { key: true })).keys).toEqual(['other']);
    },
  );

  it('ssh web: those of ssh, where the instance was given none of ours', async () => {
    expect((await started('ssh web')).keys).toEqual([]);
  });
});
