// Follows docs/login.md: its configuration starts logins, and people and jobs get the tokens that it promises.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeAll, describe, expect, it } from 'vitest';
import { parse } from '../../api/parse.ts';
import { silentLogger } from '../../base/log.ts';
import { randomSecret, systemFetch } from '../../base/system.ts';
import { rightsOf } from '../../core/access/rights-of.ts';
import { keys } from '../../core/state/keys.ts';
import { ServerConfig } from '../config.ts';
import { parseStrictYaml } from '../strict-yaml.ts';
import { startTestServer } from '../testing.ts';
import { readLogin } from './start-login.ts';
import { signingKey, TestIssuer } from './testing.ts';

let blocks: { readonly language: string; readonly text: string }[];
beforeAll(async () => {
  const document = await readFile(join(import.meta.dirname, '../../../docs/login.md'), 'utf8');
  blocks = [...document.matchAll(/```(yaml|json)\n([\s\S]*?)```/g)].map(([, language = '', text = '']) => ({
    language,
    text,
  }));
});

/** The block of the document that has this line. */
function block(line: string): string {
  const found = blocks.filter(({ text }) => text.includes(line));
  expect(found, line).toHaveLength(1);
  return found[0]?.text ?? '';
}

/** Logs in to a server with the configuration, by an ID token with the claims. */
async function logIn(line: string, claims: Readonly<Record<string, unknown>>, binding?: object) {
  const config = parse(ServerConfig, parseStrictYaml(block(line), 'docs/login.md').value);
  const issuer = config.oidc[0]?.issuer ?? config.workloadIdentity[0]?.issuer ?? '';
  const idp = new TestIssuer([await signingKey('k1', 'RS256')], issuer);
  const login = await readLogin(config, { ...idp.web, log: silentLogger, randomSecret });
  const server = await startTestServer(login === undefined ? {} : { login });
  try {
    if (binding) await server.client.create('binding', binding as never);
    const body = JSON.stringify({ idToken: await idp.token(claims), nonce: claims['nonce'] });
    const headers = { 'content-type': 'application/json' };
    const response = await systemFetch(`${server.url}/v1/login`, { method: 'POST', headers, body });
    const answer = (await response.json()) as Record<string, unknown>;
    const { cache } = server.plane.decider;
    const token = cache.get('token', keys.token(String(answer['name'])))?.value;
    if (token === undefined) return { status: response.status, answer };
    const { id: uid, name } = token.metadata;
    const rights = rightsOf({ kind: 'token', name, uid, tokenId: token.status.tokenId }, cache);
    const may = (project: string): boolean => rights.allows({ verb: 'create', resource: 'instance', project });
    return { status: response.status, may: { web: may('web'), other: may('other') } };
  } finally {
    await server.close();
  }
}

const inWeb = { status: 200, may: { web: true, other: false } };

describe('the recipe in docs/login.md', () => {
  it('lets people of a group in', async () => {
    const binding = JSON.parse(block('"web-team"')) as object;
    const claims = { aud: 'berth', azp: 'berth', groups: ['/web'], preferred_username: 'ada', nonce: 'n' };
    expect(await logIn('name: keycloak', claims, binding)).toEqual(inWeb);
    expect(await logIn('name: keycloak', { ...claims, groups: ['/other'] }, binding)).toMatchObject({ status: 403 });
  });

  const audience = 'https://berth.example';
  // As the documentation of each CI system lists them.
  const github = {
    aud: audience,
    jti: 'a',
    sub: 'repo:acme@7/web@123456789:ref:refs/heads/main',
    repository: 'acme/web',
    repository_id: '123456789',
    repository_owner_id: '7',
    ref: 'refs/heads/main',
    ref_type: 'branch',
    event_name: 'push',
    job_workflow_ref: 'acme/web/.github/workflows/deploy.yml@refs/heads/main',
  };
  const forgejo = { ...github, sub: 'repo:acme/web:ref:refs/heads/main', repository_id: '42' };
  const gitlab = {
    aud: audience,
    jti: 'a',
    sub: 'project_path:acme/web:ref_type:branch:ref:main',
    project_id: '42',
    project_path: 'acme/web',
    namespace_id: '7',
    user_login: 'ada',
    pipeline_source: 'push',
    pipeline_id: '1',
    job_id: '2',
    ref: 'main',
    ref_type: 'branch',
    ref_path: 'refs/heads/main',
    ref_protected: 'true',
    groups_direct: ['acme'],
  };

  it.each([
    ['GitHub Actions', 'name: github-web', github],
    ['Forgejo Actions', 'name: forgejo-web', forgejo],
    ['GitLab CI', 'name: gitlab-web', gitlab],
  ])('lets jobs of %s in', async (_, line, claims) => {
    expect(await logIn(line, claims)).toEqual(inWeb);
  });

  it.each([
    ['a pull request', 'name: github-web', { ...github, event_name: 'pull_request', ref: 'refs/pull/1/merge' }],
    ['another branch', 'name: github-web', { ...github, ref: 'refs/heads/dev' }],
    ['a repository of the same name', 'name: forgejo-web', { ...forgejo, repository_id: '43' }],
    [
      'a merge request of a fork',
      'name: gitlab-web',
      { ...gitlab, project_id: '9', pipeline_source: 'merge_request_event' },
    ],
    ['a branch that is not protected', 'name: gitlab-web', { ...gitlab, ref_protected: 'false' }],
    ["GitHub's default audience", 'name: github-web', { ...github, aud: 'https://github.com/acme' }],
  ])('keeps out %s', async (_, line, claims) => {
    expect(await logIn(line, claims)).toMatchObject({ status: 401 });
  });
});
