import { chmod, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readContexts, useLocalContext } from './context-file.ts';
import { page, type RunResult, runBerth } from './testing.ts';

let directory: string;
let path: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-context-'));
  path = join(directory, 'berth', 'config.yaml');
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const environment = (more: Record<string, string> = {}) => ({
  BERTH_URL: '',
  BERTH_TOKEN: '',
  BERTH_CONFIG: path,
  ...more,
});
const berth = (line: string, more: Record<string, string> = {}, stdin = ''): Promise<RunResult> =>
  runBerth(line.split(' '), { environment: environment(more), stdin, handler: () => page([]) });

async function setUp(): Promise<void> {
  await berth('context set lab --url https://lab.test:7070/ --token-file -', {}, 'lab-token\n');
  await berth('context set prod --url https://prod.test --token-file - --project ci', {}, 'prod-token\n');
}

describe('contexts', () => {
  it('are kept for their owner alone, and nothing else is left beside them', async () => {
    await setUp();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect(await readdir(join(directory, 'berth'))).toEqual(['config.yaml']);
  });

  it('are listed without their tokens; the first is current', async () => {
    await setUp();
    const { stdout } = await berth('context ls');
    expect(stdout).toBe(
      [
        '   NAME  URL                    TOKEN  PROJECT',
        '*  lab   https://lab.test:7070  yes    default',
        '   prod  https://prod.test      yes    ci',
        '',
      ].join('\n'),
    );
    expect((await berth('context ls -o json')).stdout).not.toContain('token"');
  });

  it('that are set beside a current one say that it stays so, and how to switch', async () => {
    const set = async (line: string) => (await berth(`context set ${line}`)).stdout;
    expect(await set('lab --url http://lab.test')).toBe('context lab created; it is current\n');
    const stays = '"lab" stays current: "berth context use prod" switches\n';
    expect(await set('prod --url http://prod.test')).toBe(`context prod created; ${stays}`);
    expect(await set('prod --project ci')).toBe(`context prod changed; ${stays}`);
    expect(await set('prod --use')).toBe('context prod changed; it is current\n');
  });

  it('say which server, token and project a command uses', async () => {
    await setUp();
    await berth('context use prod');
    const [current, named] = await Promise.all([berth('ps'), berth('--context lab ps')]);
    expect(current.requests[0]).toMatchObject({
      query: { project: 'ci' },
      headers: { authorization: 'Bearer prod-token' },
    });
    expect(named.requests[0]).toMatchObject({
      query: { project: 'default' },
      headers: { authorization: 'Bearer lab-token' },
    });
  });

  it.each([
    ['BERTH_URL', { BERTH_URL: 'http://other.test' }, 'ps'],
    ['--url', {}, 'ps --url http://other.test'],
  ])('keep their token from the server of %s', async (_, more, line) => {
    await setUp();
    expect((await berth(line, more)).requests[0]?.headers['authorization']).toBeUndefined();
  });

  it('warn of a token file that others may read', async () => {
    const file = join(directory, 'token');
    await writeFile(file, 'lab-token');
    await chmod(file, 0o644);
    const set = await berth(`context set lab --url http://lab.test --token-file ${file}`);
    expect(set).toMatchObject({
      exitCode: 0,
      stderr: `berth: other users of this machine may read ${file}: chmod 600 ${file}\n`,
    });
  });

  it('keep the file of an authority, once it holds a certificate', async () => {
    const file = join(directory, 'ca.pem');
    await writeFile(file, 'no certificate');
    const refused = await berth(`context set lab --url https://lab.test --ca ${file}`);
    expect(refused).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('it holds no certificate') });
    const certificate = join(directory, 'authority.pem');
    await writeFile(certificate, rootCertificates[0] ?? '');
    await berth(`context set lab --url https://lab.test --ca ${certificate}`);
    await berth('context set lab --project ci');
    expect((await readContexts(path)).contexts['lab']).toEqual({
      url: 'https://lab.test',
      ca: certificate,
      project: 'ci',
    });
    await rm(certificate);
    expect((await berth('ps')).stderr).toContain(`cannot trust the authorities in ${certificate}`);
  });

  it('lose their token when they are given another server', async () => {
    await setUp();
    await berth('context set lab --url http://other.test');
    expect((await readContexts(path)).contexts['lab']).toEqual({ url: 'http://other.test' });
  });

  it('can be forgotten, the current one too', async () => {
    await setUp();
    expect((await berth('context rm lab')).stdout).toBe('lab removed\n');
    expect((await berth('ps')).stderr).toContain('no server is known');
  });

  it.each([
    ['an unknown name', 'context use lob', 'did you mean "lab"?'],
    ['a new one without a server', 'context set x', 'needs a --url'],
    ['a URL with a password', 'context set x --url http://a:b@c', 'no user name or password'],
    ['a URL that is none', 'context set x --url c:80', 'is not the URL of a server'],
    ['a token as a flag', 'context set x --url http://c --token abc', "unknown option '--token'"],
    ['both a context and a URL', 'ps --context lab --url http://x', 'cannot both be given'],
  ])('refuse %s', async (_, line, message) => {
    await setUp();
    const { stderr, exitCode } = await berth(line);
    expect(stderr).toContain(message);
    expect(exitCode).toBe(2);
  });

  it.each([
    ['readable by others', 'contexts: {}', 0o644, 'chmod 600'],
    ['of another shape', 'contexts: [a]', 0o600, 'contexts must be a map'],
    ['without a url', 'contexts: {a: {}}', 0o600, 'contexts.a must be a map with a "url"'],
    ['cut in the middle', 'contexts: {a: {url: "ht', 0o600, 'cannot read'],
    ['with aliases', 'a: &a {url: x}\ncontexts: {b: *a}', 0o600, 'cannot read'],
    ['with a key twice', 'contexts: {}\ncontexts: {}', 0o600, 'unique'],
    ['with a tag', 'contexts: !!js/function x', 0o600, 'cannot read'],
  ])('refuse a file that is %s', async (_, text, mode, message) => {
    await berth('context set lab --url http://lab.test');
    await writeFile(path, text);
    await chmod(path, mode);
    const { stderr, exitCode } = await berth('ps');
    expect(stderr).toContain(message);
    expect(exitCode).toBe(2);
  });

  it('of a local fleet become current, but never in place of one a person chose', async () => {
    expect(await useLocalContext(path, 'dev', { url: 'http://127.0.0.1:1' })).toMatchObject({ current: true });
    expect(await useLocalContext(path, 'quickstart', { url: 'http://127.0.0.1:2' })).toMatchObject({ current: true });
    await setUp();
    await berth('context use lab');
    expect(await useLocalContext(path, 'dev', { url: 'http://127.0.0.1:3' })).toMatchObject({ current: false });
    expect(await readFile(path, 'utf8')).toContain('current: lab');
  });

  it('of a local fleet that ends beside another gives that its place back, whichever ends first', async () => {
    const begin = async () => [
      await useLocalContext(path, 'quickstart', { url: 'http://127.0.0.1:2', token: 'q' }),
      await useLocalContext(path, 'dev', { url: 'http://127.0.0.1:1', token: 'd' }),
    ];
    const [quickstart, dev] = await begin();
    expect(await dev?.leave()).toBe('quickstart');
    expect(await readContexts(path)).toMatchObject({ current: 'quickstart', contexts: { quickstart: { token: 'q' } } });
    expect(await quickstart?.leave()).toBeUndefined();
    expect(await readContexts(path)).toEqual({ contexts: {} });

    const [earlier, later] = await begin();
    expect(await earlier?.leave()).toBeUndefined();
    expect(await readContexts(path)).toEqual({
      current: 'dev',
      contexts: { dev: { url: 'http://127.0.0.1:1', token: 'd' } },
    });
    await later?.leave();
    expect(await readContexts(path)).toEqual({ contexts: {} });
  });

  it('of a local fleet that ends leave alone what somebody changed meanwhile', async () => {
    const first = await useLocalContext(path, 'dev', { url: 'http://127.0.0.1:1' });
    await setUp();
    await berth('context use lab');
    await useLocalContext(path, 'dev', { url: 'http://127.0.0.1:2' });
    expect(await first.leave()).toBeUndefined();
    expect(await readContexts(path)).toMatchObject({
      current: 'lab',
      contexts: { dev: { url: 'http://127.0.0.1:2' } },
    });
  });

  it('are named when the server of the current one does not answer', async () => {
    const silent = (line: string) =>
      runBerth(line.split(' '), {
        environment: environment(),
        handler: () => {
          throw new Error('connection refused');
        },
      });
    await berth('context set lab --url http://lab.test');
    expect((await silent('ps')).stderr).not.toContain('your contexts');
    await berth('context set prod --url https://prod.test');
    expect(await silent('ps')).toMatchObject({
      exitCode: 6,
      stderr: expect.stringMatching(
        /no answer from http:\/\/lab\.test: [^]*\n {2}your contexts: lab \(current\), prod; choose one: berth context use NAME\n$/,
      ),
    });
  });
});
