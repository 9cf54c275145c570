import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { system } from '../../../base/system.ts';
import { chooseGitJail } from './git-jail.ts';
import { fetching, fetchUser } from './test-fetching.ts';
import { type Answer, dumb, git, type GitServer, listTar, makeFolder, serve, smart } from './test-git-server.ts';

const root = makeFolder();
const source = join(root, 'source');
const published = join(root, 'public');
const servers: GitServer[] = [];
let commit = '';
let large = '';
let bomb = '';
let escaping = '';

beforeAll(() => {
  chmodSync(root, 0o755); // the user of git passes through
  mkdirSync(source);
  git(source, 'init', '-q');
  writeFileSync(join(source, 'a'), 'a\n');
  git(source, 'add', '-A');
  git(source, 'commit', '-qm', 'one');
  commit = git(source, 'rev-parse', 'HEAD');
  bomb = commitOf(treeBomb());
  escaping = commitOf(literalTree('100644', '..', git(source, 'rev-parse', 'HEAD:a')));
  writeFileSync(join(source, 'large'), randomBytes(3 * 1024 * 1024));
  git(source, 'add', '-A');
  git(source, 'commit', '-qm', 'two');
  large = git(source, 'rev-parse', 'HEAD');
  for (const [name, each] of Object.entries({ bomb, escaping })) git(source, 'update-ref', `refs/heads/${name}`, each);
  // Loose objects, as a server of plain files may have them: no pack, so nothing that git checks as one.
  cpSync(join(source, '.git'), join(published, 'tool.git'), { recursive: true });
  git(join(published, 'tool.git'), 'config', 'core.bare', 'true');
  git(join(published, 'tool.git'), 'update-server-info');
});

afterAll(async () => {
  for (const server of servers) await server.close();
  rmSync(root, { recursive: true, force: true });
});

const commitOf = (tree: string): string => git(source, 'commit-tree', '-m', 'x', tree);

function literalTree(mode: string, name: string, object: string): string {
  const file = join(root, 'tree');
  writeFileSync(file, Buffer.concat([Buffer.from(`${mode} ${name}\0`), Buffer.from(object, 'hex')]));
  return git(source, 'hash-object', '-t', 'tree', '-w', '--literally', file);
}

/** 32^8 files in nine objects. */
function treeBomb(): string {
  let entry = `100644 blob ${git(source, 'rev-parse', 'HEAD:a')}`;
  let tree = '';
  for (let depth = 0; depth < 8; depth++) {
    const lines = Array.from({ length: 32 }, (_, i) => `${entry}\tf${i}`).join('\n');
    tree = execFileSync('git', ['mktree'], { cwd: source, input: `${lines}\n`, encoding: 'utf8' }).trim();
    entry = `040000 tree ${tree}`;
  }
  return tree;
}

async function serving(answer: Answer): Promise<GitServer> {
  const server = await serve(answer);
  servers.push(server);
  return server;
}

/** The command lines of all processes of this host. */
function commandLines(): string {
  const read = (pid: string): string => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'latin1');
    } catch {
      return ''; // it has ended
    }
  };
  return readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .map(read)
    .join('\n');
}

const silent: Answer = () => {};

describe('an address', () => {
  it.each([
    ['private', '127.0.0.1', 'repositoryNetworks'],
    ['of metadata', '169.254.169.254', 'link-local, metadata or reserved'],
    ['of metadata, as IPv6', '[::ffff:169.254.169.254]', 'link-local, metadata or reserved'],
  ])('that is %s is refused before anything is asked', async (_, host, why) => {
    const { port, asked } = await serving(silent);
    const { code, message } = await fetching(
      root,
      { url: `http://${host}:${port}/tool.git`, commit },
      { repositoryNetworks: [] },
    );
    expect([code, message]).toEqual(['RepositoryRefused', expect.stringContaining(why)]);
    expect(asked).toEqual([]);
  });

  it('that one of several names of a host leads to refuses them all', async () => {
    const lookup = () => Promise.resolve([{ address: '93.184.216.34' }, { address: '169.254.169.254' }]);
    const { code, message } = await fetching(root, { url: 'http://git.example.com/tool.git', commit }, { lookup });
    expect([code, message]).toEqual([
      'RepositoryRefused',
      expect.stringContaining('git.example.com (169.254.169.254)'),
    ]);
  });

  it('is resolved once, and connected to as it was checked', async () => {
    const { port } = await serving(smart(published));
    let lookups = 0;
    const lookup = () =>
      Promise.resolve(lookups++ === 0 ? [{ address: '127.0.0.1' }] : [{ address: '169.254.169.254' }]);
    const url = `http://git.example.com:${port}/tool.git`;
    const { code } = await fetching(root, { url, commit }, { lookup, repositoryNetworks: ['git.example.com'] });
    expect([code, lookups]).toEqual(['none', 1]);
  });
});

describe('a server that', () => {
  it('redirects is not followed', async () => {
    const target = await serving(smart(published));
    const { url, asked } = await serving((request, response) =>
      response.writeHead(301, { location: `${target.url}${request.url ?? ''}` }).end(),
    );
    const { code, message } = await fetching(root, { url: `${url}/tool.git`, commit });
    expect([code, message]).toEqual(['RepositoryRefused', expect.stringContaining('redirects')]);
    expect([asked.length, target.asked]).toEqual([1, []]);
  });

  it('names another server for its objects is not followed', async () => {
    const target = await serving(dumb(published));
    const { url } = await serving((request, response) => {
      if (request.url?.includes('/info/refs')) response.end(`${commit}\trefs/heads/main\n`);
      else if (request.url?.includes('alternates')) response.end(`${target.url}/tool.git/objects\n`);
      else if (request.url?.endsWith('HEAD')) response.end('ref: refs/heads/main\n');
      else response.writeHead(404).end();
    });
    const { code } = await fetching(root, { url: `${url}/tool.git`, commit });
    expect([code, target.asked]).toEqual(['CommitNotFound', []]);
  });

  it('never answers is given up at the time limit', async () => {
    const { url, port } = await serving(silent);
    const { code, message } = await fetching(root, { url: `${url}/tool.git`, commit }, { repositoryMsMax: 1000 });
    expect([code, message]).toEqual(['RepositoryUnavailable', expect.stringContaining('repositoryMsMax')]);
    expect(commandLines()).not.toContain(`127.0.0.1:${port}`);
  });

  it('is asked no more when the fetch is given up, and no process is left', async () => {
    const giveUp = new AbortController();
    let running = '';
    const { url, port } = await serving(() => {
      running = commandLines();
      giveUp.abort();
    });
    const { code } = await fetching(root, { url: `${url}/tool.git`, commit }, { signal: giveUp.signal });
    expect(code).toBe('Aborted');
    expect(running).toContain(`127.0.0.1:${port}`);
    expect(commandLines()).not.toContain(`127.0.0.1:${port}`);
  });

  it('cannot be reached is named', async () => {
    const server = await serve(silent);
    await server.close();
    const { code, message } = await fetching(root, { url: `${server.url}/tool.git`, commit });
    expect([code, message]).toEqual(['RepositoryUnavailable', expect.stringContaining(`127.0.0.1:${server.port}`)]);
  });
});

describe.each([
  ['smart', smart],
  ['dumb', dumb],
])('a commit of a %s server', (_, answer) => {
  let url = '';
  beforeAll(async () => {
    url = `${(await serving(answer(published))).url}/tool.git`;
  });

  it.each([
    ['is too large', () => large, 'repositoryMiBMax'],
    ['has a billion files in a few objects', () => bomb, 'repositoryMiBMax'],
    ['has a path that leads out of it', () => escaping, 'cannot fetch'],
  ])('that %s is refused', async (_name, which, why) => {
    const { code, message } = await fetching(root, { url, commit: which() }, { repositoryMiBMax: 1 });
    expect([code, message]).toEqual(['RepositoryRefused', expect.stringContaining(why)]);
  });

  it('is fetched without hooks, templates and settings of this host', async () => {
    const shared = join(root, 'shared');
    const marker = join(shared, 'marker');
    mkdirSync(join(shared, 'hooks'), { recursive: true });
    chmodSync(shared, 0o777);
    for (const name of ['reference-transaction', 'post-checkout', 'post-index-change', 'pre-auto-gc'])
      writeFileSync(join(shared, 'hooks', name), `#!/bin/sh\n: > ${marker}\n`, { mode: 0o755 });
    writeFileSync(
      join(shared, 'config'),
      `[core]\n hooksPath = ${shared}/hooks\n[init]\n templateDir = ${shared}\n[http]\n proxy = http://127.0.0.1:1\n`,
    );
    const before = process.env['GIT_CONFIG_GLOBAL'];
    process.env['GIT_CONFIG_GLOBAL'] = join(shared, 'config');
    try {
      expect((await fetching(root, { url, commit })).code).toBe('none');
    } finally {
      if (before === undefined) delete process.env['GIT_CONFIG_GLOBAL'];
      else process.env['GIT_CONFIG_GLOBAL'] = before;
    }
    expect(existsSync(marker)).toBe(false);
  });
});

it.each(['main', 'HEAD', 'refs/heads/main', '-x', 'A'.repeat(40)])('refuses %s, which is no hash', async (name) => {
  const { url, asked } = await serving(silent);
  const { code } = await fetching(root, { url: `${url}/tool.git`, commit: name });
  expect([code, asked]).toEqual(['RepositoryRefused', []]);
});

describe.each([
  ['smart', smart],
  ['dumb', dumb],
])('a credential for a %s server', (_kind, answer) => {
  const password = 'hunter2-of-the-test';
  const basic = `Basic ${Buffer.from(`git:${password}`).toString('base64')}`;
  const file = join(root, 'password');
  const withRule = (prefix: string) => ({
    repositoryCredentials: [{ prefix, username: 'git', passwordFile: file }],
  });
  let seen = '';
  const closed: Answer = (request, response) => {
    seen += commandLines();
    if (request.headers.authorization === basic) answer(published)(request, response);
    else response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end();
  };
  beforeAll(() => writeFileSync(file, `${password}\n`, { mode: 0o600 }));

  it('reaches the server of its prefix, and stands on no command line', async () => {
    const { url } = await serving(closed);
    const { code, tar, message } = await fetching(
      root,
      { url: `${url}/tool.git`, commit },
      withRule(`${url}/tool.git`),
    );
    expect([code, message]).toEqual(['none', '']);
    expect([...listTar(tar).keys()]).toEqual(['work', 'work/a']);
    expect(seen).toContain('remote-http');
    expect(seen).not.toContain(password);
  });

  it.each([
    ['another path', (url: string) => `${url}/too`],
    ['another port', (url: string) => url.replace(/\d+$/, '1')],
    ['another scheme', (url: string) => url.replace('http:', 'https:')],
  ])('for %s stays here', async (_, prefixOf) => {
    const { url, asked } = await serving(closed);
    const { code, message } = await fetching(root, { url: `${url}/tool.git`, commit }, withRule(prefixOf(url)));
    expect([code, message]).toEqual(['RepositoryUnavailable', expect.stringContaining('repositoryCredentials')]);
    expect(asked.map(({ authorization }) => authorization)).toEqual([undefined]);
  });

  it('that is wrong is said to be, and not repeated', async () => {
    const { url } = await serving((_, response) =>
      response.writeHead(401, { 'www-authenticate': 'Basic realm="x"' }).end(),
    );
    const { code, message } = await fetching(root, { url: `${url}/tool.git`, commit }, withRule(url));
    expect([code, message]).toEqual(['RepositoryUnavailable', expect.stringContaining('another credential')]);
    expect(message).not.toContain(password);
  });
});

const reason = system.userId() === 0 ? undefined : 'only root may run git as somebody else';
describe.skipIf(reason !== undefined)(`git${reason === undefined ? '' : ` (${reason})`}`, () => {
  const bare: typeof chooseGitJail = (options) => chooseGitJail({ ...options, works: () => Promise.resolve(false) });
  it.each([
    ['by setpriv', chooseGitJail],
    ['without it', bare],
  ])('runs as a user of its own, %s', async (_, chooseJail) => {
    const owners = new Set<number>();
    const { url, port } = await serving((request, response) => {
      for (const name of readdirSync('/proc').filter((each) => /^\d+$/.test(each))) {
        try {
          const line = readFileSync(`/proc/${name}/cmdline`, 'latin1');
          if (line.includes(`:${port}/`) && !/^(setpriv|unshare)/.test(line)) owners.add(statSync(`/proc/${name}`).uid);
        } catch {
          // it has ended
        }
      }
      smart(published)(request, response);
    });
    const repo = { url: `${url}/tool.git`, commit };
    expect((await fetching(root, repo, { chooseJail })).code).toBe('none');
    expect([...owners]).toEqual([fetchUser]);
    const refused = await fetching(root, { ...repo, commit: large }, { chooseJail, repositoryMiBMax: 1 });
    expect([refused.code, refused.message]).toEqual(['RepositoryRefused', expect.stringContaining('repositoryMiBMax')]);
  });
});
