import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { resolveConfig } from '../../../api/config.ts';
import { parse } from '../../../api/parse.ts';
import { ServerConfig } from '../../config.ts';
import { checkClusters, checkProvisioners } from './check-provisioners.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-provisioners-'));
  await writeFile(join(folder, 'site.yml'), '- hosts: all\n');
  await writeFile(join(folder, 'token'), 'glpat-1\n');
  await writeFile(join(folder, 'empty'), '\n');
  await writeFile(join(folder, 'two-lines'), 'a\nb\n');
});
afterAll(() => rm(folder, { recursive: true }));

const ansible = { playbook: 'site.yml' };
const gitlab = {
  url: 'https://gitlab.test',
  project: 'group/spares',
  ref: 'main',
  triggerTokenFile: 'token',
  apiTokenFile: 'token',
};
const http = { url: 'https://maker.test/spares' };
const cluster = { url: 'https://cluster.test:6443', tokenFile: 'token' };

/** Names of files are of the test's folder. */
function inFolder(value: unknown, key = ''): unknown {
  const isPath = /File$|ook$|^inventory$/.test(key);
  if (typeof value === 'string') return isPath && !value.startsWith('/') ? join(folder, value) : value;
  if (typeof value !== 'object' || value === null) return value;
  const under = ['secretVariables', 'secretHeaders'].includes(key) ? 'aFile' : undefined;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([, each]) => each !== undefined)
      .map(([name, each]) => [name, inFolder(each, under ?? name)]),
  );
}

async function check(provisioners: unknown, kubernetes: unknown = {}): Promise<void> {
  const config = parse(ServerConfig, { provisioners: inFolder(provisioners), kubernetes: inFolder(kubernetes) });
  await checkProvisioners(config.provisioners);
  await checkClusters(config.kubernetes);
}

describe('a provisioner is refused at the start, with the field named,', () => {
  const of = (kind: string, field: string) => `provisioners.main.${kind}.${field}`;
  it.each<[string, object, string]>([
    ['of no kind', {}, 'provisioners.main'],
    ['of two kinds', { ansible, http }, 'provisioners.main'],
    ['of an unknown kind', { terraform: {} }, 'provisioners.main.terraform'],
    ['without a playbook', { ansible: {} }, of('ansible', 'playbook')],
    ['with a playbook by a relative path', { ansible: { playbook: './x' } }, of('ansible', 'playbook')],
    ['with a missing playbook', { ansible: { playbook: 'missing' } }, of('ansible', 'playbook')],
    ['with a missing inventory', { ansible: { ...ansible, inventory: 'missing' } }, of('ansible', 'inventory')],
    [
      'with a local connection for its own inventory',
      { ansible: { ...ansible, inventory: 'site.yml', connection: 'local' } },
      of('ansible', 'connection'),
    ],
    ['with another connection', { ansible: { ...ansible, connection: 'winrm' } }, of('ansible', 'connection')],
    ['with an option for a user', { ansible: { ...ansible, user: '-oProxyCommand=x' } }, of('ansible', 'user')],
    [
      'with a variable of ours',
      { ansible: { ...ansible, variables: { berth_spare: 'x' } } },
      of('ansible', 'variables.berth_spare'),
    ],
    ['with a list as a variable', { ansible: { ...ansible, variables: { a: [] } } }, of('ansible', 'variables.a')],
    [
      'with a variable of a strange name',
      { ansible: { ...ansible, variables: { 'a b': 1 } } },
      of('ansible', 'variables.a b'),
    ],
    [
      'with a variable that is a secret too',
      { ansible: { ...ansible, variables: { a: 1 }, secretVariables: { a: 'token' } } },
      of('ansible', 'secretVariables.a'),
    ],
    [
      'with an empty secret',
      { ansible: { ...ansible, secretVariables: { a: 'empty' } } },
      of('ansible', 'secretVariables.a'),
    ],
    [
      'with a path that ssh would take apart',
      { ansible: { ...ansible, knownHostsFile: '/a b/known' } },
      of('ansible', 'knownHostsFile'),
    ],
    ['with no time at all', { ansible: { ...ansible, timeoutMs: 0 } }, of('ansible', 'timeoutMs')],
    ['of GitLab without a token', { gitlab: { ...gitlab, apiTokenFile: undefined } }, of('gitlab', 'apiTokenFile')],
    [
      'of GitLab with a missing token',
      { gitlab: { ...gitlab, apiTokenFile: 'missing' } },
      of('gitlab', 'apiTokenFile'),
    ],
    [
      'of GitLab with two tokens',
      { gitlab: { ...gitlab, triggerTokenFile: 'two-lines' } },
      of('gitlab', 'triggerTokenFile'),
    ],
    ['of GitLab over plain HTTP', { gitlab: { ...gitlab, url: 'http://gitlab.test' } }, of('gitlab', 'url')],
    [
      'of GitLab with a password in the URL',
      { gitlab: { ...gitlab, url: 'https://u:p@gitlab.test' } },
      of('gitlab', 'url'),
    ],
    ['of GitLab with a certificate that is none', { gitlab: { ...gitlab, caFile: 'token' } }, of('gitlab', 'caFile')],
    [
      'of GitLab with a variable of ours',
      { gitlab: { ...gitlab, variables: { BERTH_SPARE_ID: 'x' } } },
      of('gitlab', 'variables.BERTH_SPARE_ID'),
    ],
    ['of GitLab without a branch', { gitlab: { ...gitlab, ref: '' } }, of('gitlab', 'ref')],
    ['with a URL of a file', { http: { url: 'file:///etc/passwd' } }, of('http', 'url')],
    [
      'with a search that names no spare',
      { http: { ...http, searchUrl: 'https://maker.test/' } },
      of('http', 'searchUrl'),
    ],
    [
      'with a release that names no spare',
      { http: { ...http, releaseUrl: 'https://maker.test/' } },
      of('http', 'releaseUrl'),
    ],
    ['with a header of ours', { http: { ...http, headers: { Host: 'x' } } }, of('http', 'headers.Host')],
    ['with a header of two lines', { http: { ...http, headers: { A: 'x\r\nB: y' } } }, of('http', 'headers.A')],
    [
      'with a header twice',
      { http: { ...http, headers: { a: 'x' }, secretHeaders: { A: 'token' } } },
      of('http', 'secretHeaders.A'),
    ],
    [
      'with a secret of two lines',
      { http: { ...http, secretHeaders: { A: 'two-lines' } } },
      of('http', 'secretHeaders.A'),
    ],
    [
      'with a secret over plain HTTP',
      { http: { url: 'http://maker.test', secretHeaders: { A: 'token' } } },
      of('http', 'url'),
    ],
    ['with an unknown field', { http: { ...http, token: 'x' } }, of('http', 'token')],
  ])('%s', async (_, main, field) => {
    await expect(async () => check({ main })).rejects.toMatchObject({ code: 'InvalidRequest', field });
  });

  it('with the name of the one that is built in', async () => {
    await expect(async () => check({ vm: { ansible } })).rejects.toMatchObject({ field: 'provisioners.vm' });
  });

  it('with a name that is none', async () => {
    await expect(async () => check({ 'Main One': { ansible } })).rejects.toMatchObject({
      field: 'provisioners.Main One',
    });
  });
});

describe('a cluster is refused', () => {
  it.each<[string, object, string]>([
    ['without a token', { url: 'https://cluster.test' }, 'kubernetes.lab.tokenFile'],
    ['with a missing token', { ...cluster, tokenFile: 'missing' }, 'kubernetes.lab.tokenFile'],
    ['over plain HTTP', { ...cluster, url: 'http://cluster.test:6443' }, 'kubernetes.lab.url'],
    ['with an authority that is none', { ...cluster, caFile: 'token' }, 'kubernetes.lab.caFile'],
  ])('%s', async (_, lab, field) => {
    await expect(async () => check({}, { lab })).rejects.toMatchObject({ code: 'InvalidRequest', field });
  });
});

it('takes what is right', async () => {
  const secretVariables = { password: 'two-lines' };
  await check(
    {
      metal: { ansible: { ...ansible, secretVariables, variables: { zone: 'a', size: 2, quick: true } } },
      pipelines: { gitlab },
      maker: { http: { ...http, searchUrl: 'https://maker.test/{spare}', secretHeaders: { Authorization: 'token' } } },
      near: { http: { url: 'http://127.0.0.1:8080/', secretHeaders: { 'X-Token': 'token' } } },
    },
    { lab: cluster },
  );
});

it('cannot come from the environment', () => {
  const environment = { BERTH_SERVER_PROVISIONERS: 'main' };
  expect(() => resolveConfig(ServerConfig, { environment, flags: {}, prefix: 'BERTH_SERVER_' })).toThrow(
    /provisioners/,
  );
});
