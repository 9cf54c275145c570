import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { resolveConfig } from '../../../api/config.ts';
import { parse } from '../../../api/parse.ts';
import { policyOf } from '../../checked-config.ts';
import { ServerConfig } from '../../config.ts';
import { readHooks } from './forge-config.ts';

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'berth-forges-'));
  await writeFile(join(folder, 'secret'), 'from-file\n');
  await writeFile(join(folder, 'empty'), '\n');
  await writeFile(join(folder, 'two-lines'), 'a\nb\n');
});
afterAll(() => rm(folder, { recursive: true }));

const rule = { repository: 'owner/*', branches: ['main'], events: ['push'] };
const github = { name: 'main', forge: 'github', secretEnv: 'SECRET', rules: [rule] };
const forgejo = { ...github, forge: 'forgejo', apiUrl: 'https://forge.test/git/api/v1' };
const environment = { SECRET: 'from-variable', EMPTY: '' };

function read(...forges: readonly object[]) {
  return readHooks(parse(ServerConfig, { forges }).forges, environment);
}

describe('a hook is refused at the start, with the field named,', () => {
  it.each<[string, readonly object[], string]>([
    ['without a name', [{ ...github, name: undefined }], 'forges[0].name'],
    ['of an unknown forge', [{ ...github, forge: 'gitlab' }], 'forges[0].forge'],
    ['with an unknown field', [{ ...github, secret: 'x' }], 'forges[0].secret'],
    ['with a name twice', [github, github], 'forges[1].name'],
    ['without a secret', [{ ...github, secretEnv: undefined }], 'forges[0].secretFile'],
    ['with two secrets', [{ ...github, secretFile: 'secret' }], 'forges[0].secretFile'],
    ['with an empty variable', [{ ...github, secretEnv: 'EMPTY' }], 'forges[0].secretEnv'],
    ['with a variable that is not set', [{ ...github, secretEnv: 'MISSING' }], 'forges[0].secretEnv'],
    ['with an empty file', [{ ...github, secretEnv: undefined, secretFile: 'empty' }], 'forges[0].secretFile'],
    ['with a missing file', [{ ...github, secretEnv: undefined, secretFile: 'missing' }], 'forges[0].secretFile'],
    ['with a file of two lines', [{ ...github, tokenFile: 'two-lines' }], 'forges[0].tokenFile'],
    ['of Forgejo without an address', [{ ...forgejo, apiUrl: undefined }], 'forges[0].apiUrl'],
    ['with an address that says no clone URL', [{ ...forgejo, apiUrl: 'https://forge.test' }], 'forges[0].apiUrl'],
    ['with a password in the address', [{ ...forgejo, apiUrl: 'https://u:p@forge.test/api/v1' }], 'forges[0].apiUrl'],
    ['of Forgejo with approved forks', [{ ...forgejo, forks: 'approved' }], 'forges[0].forks'],
    ['without rules', [{ ...github, rules: [] }], 'forges[0].rules'],
    [
      'with a rule for one word',
      [{ ...github, rules: [{ ...rule, repository: 'web' }] }],
      'forges[0].rules[0].repository',
    ],
    ['with a rule for no branch', [{ ...github, rules: [{ ...rule, branches: [] }] }], 'forges[0].rules[0].branches'],
    ['with a rule for tags', [{ ...github, rules: [{ ...rule, events: ['tag'] }] }], 'forges[0].rules[0].events[0]'],
    [
      'with a workflow path that leads out',
      [{ ...github, rules: [{ ...rule, workflowPath: '../a.sh' }] }],
      'forges[0].rules[0].workflowPath',
    ],
    ['with an unknown field in a rule', [{ ...github, rules: [{ ...rule, path: 'a' }] }], 'forges[0].rules[0].path'],
  ])('%s', async (_, forges, field) => {
    const inFolder = forges.map((each) =>
      Object.fromEntries(
        Object.entries(each).map(([name, value]) => [
          name,
          name.endsWith('File') && typeof value === 'string' ? join(folder, value) : (value as unknown),
        ]),
      ),
    );
    const clean = JSON.parse(JSON.stringify(inFolder)) as object[];
    await expect(async () => read(...clean)).rejects.toMatchObject({ code: 'InvalidRequest', field });
  });
});

it('cannot come from the environment', () => {
  const environment = { BERTH_SERVER_FORGES: 'main' };
  expect(() => resolveConfig(ServerConfig, { environment, flags: {}, prefix: 'BERTH_SERVER_' })).toThrow(
    expect.objectContaining({ field: 'forges[0]', message: expect.stringContaining('BERTH_SERVER_FORGES') }),
  );
});

describe('a hook has', () => {
  it('its secrets from a file and a variable', async () => {
    const { secretEnv: _, ...rest } = github;
    const [hook] = await read({ ...rest, secretFile: join(folder, 'secret'), tokenEnv: 'SECRET' });
    expect([String(hook?.secret), hook?.token]).toEqual(['from-file', 'from-variable']);
  });

  it.each<[string, object, string]>([
    ['of GitHub', github, 'https://github.com'],
    ["of GitHub's server", { ...github, apiUrl: 'https://ghe.test/api/v3' }, 'https://ghe.test'],
    ['of Forgejo below a path', forgejo, 'https://forge.test/git'],
    ['as configured', { ...forgejo, cloneUrl: 'https://other.test' }, 'https://other.test'],
  ])('the clone URL %s', async (_, config, cloneBaseUrl) =>
    expect(await read(config)).toMatchObject([{ cloneBaseUrl }]),
  );

  it('a limit on instances at once', () => {
    const limitOf = (config: object): unknown => policyOf(parse(ServerConfig, config)).maxConcurrency;
    expect(limitOf({})).toBeUndefined();
    expect(limitOf({ forges: [github] })).toBe(2);
    expect(limitOf({ forges: [github], maxConcurrency: 7 })).toBe(7);
  });
});
