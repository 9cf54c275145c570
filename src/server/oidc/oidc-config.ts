// Who may log in: OpenID providers for people, and rules for workloads whose CI system signs tokens. Configured in the file only.
// What the schema cannot say is checked here; a rule that would admit strangers is refused, naming its field.

import { readFile } from 'node:fs/promises';
import { type Static, Type } from 'typebox';
import { ApiError } from '../../api/errors.ts';
import { whyNoIssuer } from '../../api/login/discovery.ts';
import { Name } from '../../api/resources/metadata.ts';
import { describeError } from '../../base/log.ts';

const closed = { additionalProperties: false } as const;

const printable = (description: string) =>
  Type.String({ pattern: '^[\\x21-\\x7e]+$', minLength: 1, maxLength: 512, description });

const claimPath = (description: string) =>
  Type.String({ pattern: '^[\\x21-\\x7e]+$', minLength: 1, maxLength: 256, description });

const claimValue = Type.String({ pattern: '^[^\\u0000-\\u001f\\u007f]*$', minLength: 1, maxLength: 512 });

export const OidcProviderConfig = Type.Object(
  {
    name: Name,
    issuer: printable('as the provider writes it, with or without a slash at its end: https://idp.example/realms/main'),
    clientId: printable('of this installation at the provider'),
    clientSecretFile: Type.Optional(
      Type.String({ minLength: 1, maxLength: 1024, description: 'only for providers without public clients' }),
    ),
    scopes: Type.Array(printable('a scope'), {
      default: ['openid', 'profile', 'email'],
      minItems: 1,
      maxItems: 32,
      uniqueItems: true,
    }),
    groupsClaim: Type.Optional(claimPath('the claim with the groups, or a path to it: realm_access.roles')),
    userClaim: Type.String({
      ...claimPath('the claim whose text is shown for a user; it gives no rights'),
      default: 'preferred_username',
    }),
    deviceCode: Type.Boolean({
      default: false,
      description: 'allow logins by a code on another device, which are easier to phish',
    }),
  },
  closed,
);

export const WorkloadRuleConfig = Type.Object(
  {
    name: Name,
    issuer: printable('of the CI system: https://token.actions.githubusercontent.com'),
    audience: printable('what jobs name as the audience of their tokens: the URL of this installation'),
    claims: Type.Record(
      Type.String({ pattern: '^[A-Za-z0-9_.:/-]{1,128}$' }),
      Type.Union([claimValue, Type.Array(claimValue, { minItems: 1, maxItems: 64 })]),
      {
        ...closed,
        minProperties: 1,
        maxProperties: 32,
        description: 'a text or several by name of a claim; * stands for any characters but / and :',
      },
    ),
    role: Name,
    project: Name,
    expires: Type.String({
      default: '1h',
      pattern: '^[1-9][0-9]{0,3}(m|h)$',
      description: 'how long the token is valid, as 30m or 12h',
    }),
  },
  closed,
);

export interface OidcConfig {
  readonly oidc: readonly Static<typeof OidcProviderConfig>[];
  readonly workloadIdentity: readonly Static<typeof WorkloadRuleConfig>[];
}

export interface ConfiguredProvider extends Static<typeof OidcProviderConfig> {
  readonly clientSecret?: string;
}

export interface WorkloadRule extends Static<typeof WorkloadRuleConfig> {
  readonly expiresMs: number;
}

export interface ConfiguredOidc {
  readonly providers: readonly ConfiguredProvider[];
  readonly rules: readonly WorkloadRule[];
}

/** The longest life of a token that a login gives. */
export const loginExpiresMsMax = 12 * 3_600_000;

/** Undefined when neither is configured. Throws `InvalidRequest` with the field. */
export async function readOidc({ oidc, workloadIdentity }: OidcConfig): Promise<ConfiguredOidc | undefined> {
  if (oidc.length === 0 && workloadIdentity.length === 0) return undefined;
  const providers: ConfiguredProvider[] = [];
  for (const [i, config] of oidc.entries()) {
    checkProvider(config, { at: `oidc[${i}]`, others: providers });
    providers.push(await withSecret(config, `oidc[${i}]`));
  }
  const rules: WorkloadRule[] = [];
  for (const [i, config] of workloadIdentity.entries())
    rules.push(checkedRule(config, { at: `workloadIdentity[${i}]`, others: rules, providers }));
  return { providers, rules };
}

function checkProvider(
  { name, issuer, clientId, clientSecretFile, scopes, deviceCode }: ConfiguredProvider,
  { at, others }: { readonly at: string; readonly others: readonly ConfiguredProvider[] },
): void {
  if (others.some((other) => other.name === name))
    throw invalid(`${at}.name`, `another provider has the name "${name}"; give each its own`);
  if (others.some((other) => other.issuer === issuer && other.clientId === clientId))
    throw invalid(`${at}.clientId`, 'another provider has the same issuer and clientId; remove one');
  checkIssuer(issuer, at);
  if (!scopes.includes('openid'))
    throw invalid(`${at}.scopes`, 'without the scope openid there is no ID token; add it');
  if (deviceCode && clientSecretFile !== undefined)
    throw invalid(`${at}.deviceCode`, 'it needs a public client; remove clientSecretFile, or set it to false');
}

async function withSecret(config: ConfiguredProvider, at: string): Promise<ConfiguredProvider> {
  const { clientSecretFile: file } = config;
  if (file === undefined) return config;
  const field = `${at}.clientSecretFile`;
  const text = await readFile(file, 'utf8').catch((cause: unknown) => {
    throw invalid(field, `cannot read ${file}: ${describeError(cause)}`);
  });
  const clientSecret = text.trim();
  if (!/^[\x21-\x7e]{1,1024}$/.test(clientSecret))
    throw invalid(field, `${file} must have one line of ASCII characters without spaces`);
  return { ...config, clientSecret };
}

interface RulePlace {
  readonly at: string;
  readonly others: readonly WorkloadRule[];
  readonly providers: readonly ConfiguredProvider[];
}

function checkedRule(config: Static<typeof WorkloadRuleConfig>, { at, others, providers }: RulePlace): WorkloadRule {
  const { name, issuer, audience, claims, expires } = config;
  if (others.some((other) => other.name === name))
    throw invalid(`${at}.name`, `another rule has the name "${name}"; give each its own`);
  checkIssuer(issuer, at);
  const foreign = whyForeignAudience(audience, issuer);
  if (foreign !== undefined) throw invalid(`${at}.audience`, foreign);
  if (providers.some((provider) => provider.issuer === issuer && provider.clientId === audience))
    throw invalid(`${at}.audience`, 'it is the clientId of a provider with the same issuer; give workloads another');
  checkIds(claims, at);
  const expiresMs = Number(expires.slice(0, -1)) * (expires.endsWith('h') ? 3_600_000 : 60_000);
  if (expiresMs > loginExpiresMsMax) throw invalid(`${at}.expires`, 'a token of a workload lives 12h at most');
  return { ...config, expiresMs };
}

function checkIssuer(issuer: string, at: string): void {
  const why = whyNoIssuer(issuer);
  if (why !== undefined) throw invalid(`${at}.issuer`, why);
}

/** Other services know audiences that a CI system uses by default: each could hand on the tokens it receives. */
function whyForeignAudience(audience: string, issuer: string): string | undefined {
  const url = URL.parse(audience);
  const isDefault =
    audience === issuer || url?.hostname === 'github.com' || url?.hostname === URL.parse(issuer)?.hostname;
  return isDefault && url?.hostname !== '127.0.0.1'
    ? 'it must be of this installation, not the default of the CI system, for which other services receive tokens; use the URL of this server'
    : undefined;
}

/** Names of repositories and their owners can be taken by others later; their numbers cannot. */
const idClaims = ['repository_id', 'repository_owner_id', 'project_id'];

function checkIds(claims: WorkloadRule['claims'], at: string): void {
  const given = idClaims.filter((claim) => Object.hasOwn(claims, claim));
  if (given.length === 0) {
    throw invalid(
      `${at}.claims`,
      `it must require one of ${idClaims.join(', ')}: names of repositories can be taken by others, their ids cannot`,
    );
  }
  for (const claim of given)
    for (const value of [claims[claim] ?? ''].flat())
      if (!/^[1-9][0-9]{0,19}$/.test(value))
        throw invalid(`${at}.claims.${claim}`, 'it must be a number in quotes, without wildcards: "123456"');
}

function invalid(field: string, why: string): ApiError {
  return new ApiError('InvalidRequest', `${field}: ${why}`, { field });
}
