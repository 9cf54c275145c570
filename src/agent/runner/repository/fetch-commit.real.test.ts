import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { fetching } from './test-fetching.ts';
import { type Answer, dumb, git, type GitServer, listTar, makeFolder, serve, smart } from './test-git-server.ts';

const root = makeFolder();
const source = join(root, 'source');
const longName = `${'d'.repeat(90)}/${'e'.repeat(90)}/${'f'.repeat(120)}`;
let commit = '';
let first = '';
let submodule = '';
const servers: GitServer[] = [];

beforeAll(() => {
  chmodSync(root, 0o755); // the user of git passes through
  mkdirSync(source);
  git(source, 'init', '-q');
  writeFileSync(join(source, 'first'), 'first\n');
  git(source, 'add', '-A');
  git(source, 'commit', '-qm', 'first');
  first = git(source, 'rev-parse', 'HEAD');
  writeFileSync(
    join(source, '.gitattributes'),
    '[attr]evil export-ignore\n*.secret evil\nignored export-ignore\n*.subst export-subst ident\n*.crlf text eol=crlf\n*.utf16 working-tree-encoding=UTF-16\n',
  );
  writeFileSync(join(source, 'kept.secret'), 'kept\n');
  writeFileSync(join(source, 'ignored'), 'kept too\n');
  writeFileSync(join(source, 'a.subst'), '$Format:%H$ $Id$\n');
  writeFileSync(join(source, 'a.crlf'), 'one\ntwo\n');
  writeFileSync(join(source, 'binary'), Buffer.from([0, 13, 10, 255, 254, 10]));
  writeFileSync(join(source, 'run.sh'), '#!/bin/sh\n', { mode: 0o755 });
  mkdirSync(join(source, longName, '..'), { recursive: true });
  writeFileSync(join(source, longName), 'long\n');
  symlinkSync('/etc/passwd', join(source, 'outside'));
  symlinkSync('x'.repeat(150), join(source, 'long-link'));
  git(source, 'add', '-A');
  submodule = first;
  git(source, 'update-index', '--add', '--cacheinfo', `160000,${submodule},module`);
  git(source, 'commit', '-qm', 'second');
  commit = git(source, 'rev-parse', 'HEAD');
  git(root, 'clone', '-q', '--bare', source, join(root, 'public', 'team', 'tool.git'));
  git(join(root, 'public', 'team', 'tool.git'), 'update-server-info');
});

afterAll(async () => {
  for (const server of servers) await server.close();
  rmSync(root, { recursive: true, force: true });
});

async function serving(answer: Answer): Promise<GitServer> {
  const server = await serve(answer);
  servers.push(server);
  return server;
}

describe.each([
  ['smart', smart],
  ['smart, but old', (folder: string): Answer => smart(folder, { old: true })],
  ['dumb', dumb],
])('from a %s server', (kind, answer) => {
  let url = '';
  beforeAll(async () => {
    url = `${(await serving(answer(join(root, 'public')))).url}/team/tool.git`;
  });

  it('has the exact bytes of the commit, whatever its attributes say', async () => {
    const { code, tar, message } = await fetching(root, { url, commit });
    expect([code, message]).toEqual(['none', '']);
    const files = listTar(tar);
    const paths = git(source, 'ls-tree', '-r', '-z', '--name-only', commit).split('\0').filter(Boolean);
    for (const path of paths.filter((each) => !['module', 'outside', 'long-link'].includes(each))) {
      const wanted = execFileSync('git', ['cat-file', 'blob', `${commit}:${path}`], { cwd: source });
      expect(files.get(`work/${path}`), path).toMatchObject({ type: 'f', text: wanted.toString('latin1') });
    }
    expect(files.get('work/run.sh')?.mode).toBe(0o755);
    expect(files.get('work/binary')?.mode).toBe(0o644);
    expect(files.get('work/outside')).toMatchObject({ type: 'l', link: '/etc/passwd' });
    expect(files.get('work/long-link')).toMatchObject({ type: 'l', link: 'x'.repeat(150) });
    expect(files.get('work/module')).toMatchObject({ type: 'd' });
    expect([...files.keys()].filter((path) => path.startsWith('work/module/'))).toEqual([]);
    expect(listTar(tar, ['busybox', 'tar'])).toEqual(files); // guests of the tiny image and of Alpine have it
  });

  it('has an older commit, too', async () => {
    const { code, tar } = await fetching(root, { url, commit: first });
    expect([code, [...listTar(tar).keys()]]).toEqual(['none', ['work', 'work/first']]);
  });

  it('says that a commit is not there', async () => {
    const missing = '0123456789012345678901234567890123456789';
    const { code, message } = await fetching(root, { url, commit: missing });
    expect(code).toBe('CommitNotFound');
    expect(message).toContain(missing);
  });

  it('says that a repository is not there', async () => {
    const { code, message } = await fetching(root, { url: url.replace('tool', 'other'), commit });
    expect([code, message]).toEqual(['RepositoryUnavailable', expect.stringContaining('repositoryCredentials')]);
  });

  it('refuses a hash that is no commit', async () => {
    const tree = git(source, 'rev-parse', `${commit}^{tree}`);
    const { code } = await fetching(root, { url, commit: tree });
    expect(code, kind).toBe('CommitNotFound');
  });
});

it('has a commit of a repository with SHA-256', async () => {
  const newer = join(root, 'newer');
  mkdirSync(newer);
  git(newer, 'init', '-q', '--object-format=sha256');
  writeFileSync(join(newer, 'a'), 'a\n');
  git(newer, 'add', '-A');
  git(newer, 'commit', '-qm', 'one');
  const { url } = await serving(smart(root));
  const { code, tar, message } = await fetching(root, {
    url: `${url}/newer/.git`,
    commit: git(newer, 'rev-parse', 'HEAD'),
  });
  expect([code, message]).toEqual(['none', '']);
  expect([...listTar(tar).keys()]).toEqual(['work', 'work/a']);
});

it('is fetched over TLS from a server that the agent was told to trust, and from no other', async () => {
  const [key, cert] = [join(root, 'key.pem'), join(root, 'cert.pem')];
  execFileSync(
    'openssl',
    `req -x509 -newkey rsa:2048 -nodes -keyout ${key} -out ${cert} -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1`.split(
      ' ',
    ),
    { stdio: 'ignore' },
  );
  const server = await serve(smart(join(root, 'public')), {
    key: readFileSync(key, 'utf8'),
    cert: readFileSync(cert, 'utf8'),
  });
  servers.push(server);
  const repo = { url: `${server.url}/team/tool.git`, commit };
  const outcome = await fetching(root, repo, { authorities: cert });
  expect([outcome.code, outcome.message]).toEqual(['none', '']);
  const refused = await fetching(root, repo);
  expect([refused.code, refused.message]).toEqual(['RepositoryUnavailable', expect.stringContaining('certificate')]);
  expect(server.asked.length).toBeGreaterThan(0);
});
