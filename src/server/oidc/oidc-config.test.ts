import { mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { resolveConfig } from '../../api/config.ts';
import { ServerConfig } from '../config.ts';
import { readOidc } from './oidc-config.ts';

const provider = { name: 'main', issuer: 'https://idp.example/realms/main', clientId: 'berth' };
const rule = {
  name: 'ci',
  issuer: 'https://token.actions.githubusercontent.com',
  audience: 'https://berth.example',
  claims: { repository_id: '42', ref: 'refs/heads/main' },
  role: 'user',
  project: 'web',
};

const read = async (file: object) =>
  readOidc(
    resolveConfig(ServerConfig, {
      file: { path: 'berth.yaml', value: file },
      environment: {},
      flags: {},
      prefix: 'X_',
    }),
  );

it('reads providers and rules with their defaults', async () => {
  await expect(read({})).resolves.toBeUndefined();
  await expect(
    read({ oidc: [provider], workloadIdentity: [rule, { ...rule, name: 'night', expires: '12h' }] }),
  ).resolves.toMatchObject({
    providers: [{ scopes: ['openid', 'profile', 'email'], userClaim: 'preferred_username', deviceCode: false }],
    rules: [{ expiresMs: 3_600_000 }, { expiresMs: 43_200_000 }],
  });
});

it('reads the secret of a client from a file', async () => {
  const file = join(await mkdtemp(join(tmpdir(), 'berth-oidc-')), 'secret');
  await writeFile(file, 'hush\n');
  const read1 = await read({ oidc: [{ ...provider, clientSecretFile: file }] });
  expect(read1?.providers[0]?.clientSecret).toBe('hush');
  await writeFile(file, 'two words\n');
  await expect(read({ oidc: [{ ...provider, clientSecretFile: file }] })).rejects.toMatchObject({
    field: 'oidc[0].clientSecretFile',
  });
});

describe('refuses a provider', () => {
  const rows: readonly (readonly [string, object, string])[] = [
    ['over plain HTTP', { issuer: 'http://idp.example' }, 'issuer'],
    ['whose issuer is no URL', { issuer: 'idp.example' }, 'issuer'],
    ['whose issuer has a query', { issuer: 'https://idp.example/?a=b' }, 'issuer'],
    ['whose issuer has a password', { issuer: 'https://a:b@idp.example' }, 'issuer'],
    ['without a client', { clientId: undefined }, 'clientId'],
    ['without the scope openid', { scopes: ['profile'] }, 'scopes'],
    ['with a secret in the configuration', { clientSecret: 'hush' }, 'clientSecret'],
    ['with a secret file that is not there', { clientSecretFile: '/nonexistent/secret' }, 'clientSecretFile'],
    ['with a device code and a secret', { deviceCode: true, clientSecretFile: '/etc/hostname' }, 'deviceCode'],
  ];
  it.each(rows)('%s', async (_, change, field) => {
    const config = JSON.parse(JSON.stringify({ ...provider, ...change })) as object;
    await expect(read({ oidc: [config] })).rejects.toMatchObject({ code: 'InvalidRequest', field: `oidc[0].${field}` });
  });

  it('with the name or the client of another', async () => {
    await expect(read({ oidc: [provider, provider] })).rejects.toMatchObject({ field: 'oidc[1].name' });
    const twin = { ...provider, name: 'other' };
    await expect(read({ oidc: [provider, twin] })).rejects.toMatchObject({ field: 'oidc[1].clientId' });
  });
});

describe('refuses a rule', () => {
  const rows: readonly (readonly [string, object, string])[] = [
    ['without an audience', { audience: undefined }, 'audience'],
    ['with an empty audience', { audience: '' }, 'audience'],
    ["with GitHub's default audience", { audience: 'https://github.com/acme' }, 'audience'],
    ['with the issuer as the audience', { audience: rule.issuer }, 'audience'],
    [
      "with an address of GitLab's as the audience",
      { issuer: 'https://gitlab.example', audience: 'https://gitlab.example/x' },
      'audience',
    ],
    ['without claims', { claims: undefined }, 'claims'],
    ['with empty claims', { claims: {} }, 'claims'],
    ['that knows a repository by its name only', { claims: { repository: 'acme/web' } }, 'claims'],
    ['that knows a job by its subject only', { claims: { sub: 'repo:acme/web:ref:refs/heads/main' } }, 'claims'],
    ['with a wildcard in an id', { claims: { repository_id: '4*' } }, 'claims.repository_id'],
    ['with a name as an id', { claims: { repository_id: ['42', 'acme/web'] } }, 'claims.repository_id'],
    ['with a number without quotes', { claims: { repository_id: 42 } }, 'claims.repository_id'],
    ['without a role', { role: undefined }, 'role'],
    ['without a project', { project: undefined }, 'project'],
    ['for more than 12 hours', { expires: '13h' }, 'expires'],
    ['for ever', { expires: 'never' }, 'expires'],
    ['over plain HTTP', { issuer: 'http://forge.example/api/actions' }, 'issuer'],
  ];
  it.each(rows)('%s', async (_, change, field) => {
    const config = JSON.parse(JSON.stringify({ ...rule, ...change })) as object;
    await expect(read({ workloadIdentity: [config] })).rejects.toMatchObject({
      code: 'InvalidRequest',
      field: `workloadIdentity[0].${field}`,
    });
  });

  it('whose audience is the client of a provider with the same issuer', async () => {
    const gitlab = 'https://gitlab.example';
    const config = {
      oidc: [{ ...provider, issuer: gitlab }],
      workloadIdentity: [{ ...rule, issuer: gitlab, audience: 'berth', claims: { project_id: '42' } }],
    };
    await expect(read(config)).rejects.toMatchObject({ field: 'workloadIdentity[0].audience' });
  });
});
