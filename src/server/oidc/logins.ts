// Turns the ID token of a person or of a workload into a verified login. It decides by issuer and audience what the token is:
// nothing in the request says it. Loaded only when a provider or a rule is configured.

import { createHash } from 'node:crypto';
import { ApiError } from '../../api/errors.ts';
import type { VerifiedLogin } from '../../core/operations/access/login.ts';
import { assert } from '../../base/assert.ts';
import { fetchJson, type JsonAnswer, type JsonRequest, type Web } from '../../base/fetch-json.ts';
import { isRecord } from '../../base/is-record.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { ProviderMetadata } from '../../api/login/discovery.ts';
import { ageSecondsMax, type Claims, quoted, refused, unverified, verifyIdToken } from './id-token.ts';
import { verifyAccessToken } from './access-token.ts';
import { Issuer } from './issuer.ts';
import { type ConfiguredOidc, type ConfiguredProvider, loginExpiresMsMax, type WorkloadRule } from './oidc-config.ts';
import { displayNameOf, groupsOf, refuseJobs } from './user-claims.ts';
import { whyNotAdmitted } from './workload-rules.ts';

export interface CodeLogin {
  readonly provider: string;
  readonly code: string;
  readonly codeVerifier: string;
  readonly redirectUri: string;
  readonly nonce: string;
}

export class Logins {
  readonly #config: ConfiguredOidc;
  readonly #web: Web;
  readonly #log: Logger;
  readonly #issuers: ReadonlyMap<string, Issuer>;

  constructor(config: ConfiguredOidc, { web, log }: { readonly web: Web; readonly log: Logger }) {
    this.#config = config;
    this.#web = web;
    this.#log = log;
    const urls = [...config.providers, ...config.rules].map(({ issuer }) => issuer);
    this.#issuers = new Map(urls.map((url) => [url, new Issuer(url, { web, log })]));
  }

  get providers(): readonly ConfiguredProvider[] {
    return this.#config.providers;
  }

  /** Throws `Unauthenticated`, `Forbidden` or `Unavailable` with the reason. */
  async byIdToken(idToken: string, nonce: string | undefined): Promise<VerifiedLogin> {
    const { issuer, audiences } = unverified(idToken);
    if (!this.#issuers.has(issuer)) throw refused(`no provider or rule has the issuer ${quoted(issuer)}`);
    const provider = this.#config.providers.find((each) => each.issuer === issuer && audiences.includes(each.clientId));
    if (provider !== undefined) return this.#person(idToken, { provider, nonce });
    const rule = this.#config.rules.find((each) => each.issuer === issuer && audiences.includes(each.audience));
    if (rule !== undefined) return this.#workload(idToken, rule);
    throw refused('it is for another audience (aud), not for this server');
  }

  /** For the resource `audience` of this server. People only: jobs of CI systems log in. Throws as `byIdToken` does. */
  async byAccessToken(token: string, audience: string): Promise<Omit<VerifiedLogin, 'spent'>> {
    const { issuer } = unverified(token);
    const provider = this.#config.providers.find((each) => each.issuer === issuer);
    if (provider === undefined) throw refused(`no provider has the issuer ${quoted(issuer)}`);
    const nowMs = this.#web.clock.nowMs();
    const claims = await verifyAccessToken(token, { issuer: this.#issuer(issuer), audience, nowMs });
    refuseJobs(claims);
    return {
      user: userOf(claims, displayNameOf(claims, provider.userClaim)),
      grant: { kind: 'user', provider: provider.name, groups: groupsOf(claims, provider.groupsClaim) },
      expiresInMs: Math.max(1, Math.min(loginExpiresMsMax, claims.exp * 1_000 - Math.ceil(nowMs))),
    };
  }

  /** For providers whose clients have a secret, which only the server knows. */
  async byCode(login: CodeLogin): Promise<VerifiedLogin> {
    if (this.#config.providers.find(({ name }) => name === login.provider)?.clientSecret === undefined)
      throw new ApiError(
        'InvalidRequest',
        `provider: there is no provider ${quoted(login.provider)} with a client secret`,
        { field: 'provider' },
      );
    return this.#byCode(login);
  }

  /** Finishes a login in a browser. `iss`: the issuer that the provider sent (RFC 9207). */
  async byBrowserCode(login: CodeLogin, iss: string | undefined): Promise<VerifiedLogin> {
    const { issuer, answersWithIssuer } = await this.#metadataOf(this.#provider(login.provider));
    if (iss === undefined ? answersWithIssuer : iss !== issuer)
      throw refused('the answer in the browser is not of the provider that was asked');
    return this.#byCode(login);
  }

  /** The URL at which a browser logs in. Throws `InvalidRequest` for an unknown provider, `Unavailable` when the provider does not answer. */
  async authorizationUrl(
    name: string,
    asked: {
      readonly state: string;
      readonly nonce: string;
      readonly codeChallenge: string;
      readonly redirectUri: string;
    },
  ): Promise<string> {
    const provider = this.#provider(name);
    const { authorizationEndpoint } = await this.#metadataOf(provider);
    if (authorizationEndpoint === undefined)
      throw new ApiError('Unavailable', `the provider ${quoted(name)} does not offer logins in a browser`);
    const url = new URL(authorizationEndpoint);
    const query = {
      response_type: 'code',
      client_id: provider.clientId,
      redirect_uri: asked.redirectUri,
      scope: provider.scopes.join(' '),
      state: asked.state,
      nonce: asked.nonce,
      code_challenge: asked.codeChallenge,
      code_challenge_method: 'S256',
    };
    for (const [key, value] of Object.entries(query)) url.searchParams.set(key, value);
    return url.href;
  }

  #provider(name: string): ConfiguredProvider {
    const provider = this.#config.providers.find((each) => each.name === name);
    if (provider !== undefined) return provider;
    throw new ApiError('InvalidRequest', `provider: there is no provider ${quoted(name)}`, { field: 'provider' });
  }

  async #metadataOf({ name, issuer }: ConfiguredProvider): Promise<ProviderMetadata> {
    try {
      return await this.#issuer(issuer).metadata();
    } catch (cause) {
      this.#log.warn('cannot read the metadata of a login provider', { issuer, error: describeError(cause) });
      throw new ApiError('Unavailable', `the provider ${quoted(name)} cannot be reached now; try again`);
    }
  }

  async #byCode({ provider: name, code, codeVerifier, redirectUri, nonce }: CodeLogin): Promise<VerifiedLogin> {
    const provider = this.#provider(name);
    const { clientId, clientSecret } = provider;
    const idToken = await this.#exchange(provider.issuer, {
      form: {
        grant_type: 'authorization_code',
        code,
        code_verifier: codeVerifier,
        redirect_uri: redirectUri,
        ...(clientSecret === undefined ? { client_id: clientId } : {}),
      },
      headers: clientSecret === undefined ? {} : { authorization: basic(clientId, clientSecret) },
    });
    return this.#person(idToken, { provider, nonce });
  }

  async #person(
    idToken: string,
    { provider, nonce }: { readonly provider: ConfiguredProvider; readonly nonce: string | undefined },
  ): Promise<VerifiedLogin> {
    const claims = await this.#verified(idToken, provider.issuer, provider.clientId);
    if (claims['nonce'] !== nonce) throw refused('its nonce is not that of this login');
    // ID tokens by device code have none, as have those that some other program got.
    if (nonce === undefined && !provider.deviceCode)
      throw refused('it has no nonce, so it is not of a login in a browser, and others are not allowed (deviceCode)');
    refuseJobs(claims);
    const groups = groupsOf(claims, provider.groupsClaim);
    return {
      user: userOf(claims, displayNameOf(claims, provider.userClaim)),
      grant: { kind: 'user', provider: provider.name, groups },
      expiresInMs: loginExpiresMsMax,
      spent: spentOf(idToken, claims),
    };
  }

  async #workload(idToken: string, { issuer, audience }: WorkloadRule): Promise<VerifiedLogin> {
    const claims = await this.#verified(idToken, issuer, audience);
    const rules = this.#config.rules.filter((rule) => rule.issuer === issuer && rule.audience === audience);
    for (const rule of rules) {
      const why = whyNotAdmitted(rule, claims);
      if (why !== undefined) {
        this.#log.info('a rule does not admit a workload', { rule: rule.name, subject: claims.sub, why });
        continue;
      }
      return {
        user: userOf(claims, displayNameOf(claims, 'sub')),
        grant: { kind: 'workload', rule: rule.name, role: rule.role, project: rule.project },
        expiresInMs: rule.expiresMs,
        spent: spentOf(idToken, claims),
      };
    }
    throw refused("no rule of workloadIdentity admits this job; the server's log says why");
  }

  async #verified(idToken: string, issuer: string, audience: string): Promise<Claims> {
    return verifyIdToken(idToken, { issuer: this.#issuer(issuer), audience, nowMs: this.#web.clock.nowMs() });
  }

  #issuer(url: string): Issuer {
    const issuer = this.#issuers.get(url);
    assert(issuer !== undefined, 'every configured issuer is known');
    return issuer;
  }

  async #exchange(issuer: string, request: JsonRequest): Promise<string> {
    const { status, json } = await this.#askForTokens(issuer, request);
    const { id_token: idToken, error }: Record<string, unknown> = isRecord(json) ? json : {};
    if (status === 200 && typeof idToken === 'string') return idToken;
    const why = typeof error === 'string' ? quoted(error) : `the status ${status}`;
    throw new ApiError('Unauthenticated', `the provider refuses the code: ${why}`);
  }

  async #askForTokens(issuer: string, request: JsonRequest): Promise<JsonAnswer> {
    try {
      const { tokenEndpoint } = await this.#issuer(issuer).metadata();
      if (tokenEndpoint === undefined) throw new Error('it has no token endpoint');
      return await fetchJson(this.#web, tokenEndpoint, request);
    } catch (cause) {
      this.#log.warn('a provider cannot be asked for tokens', { issuer, error: describeError(cause) });
      throw new ApiError('Unavailable', `the provider ${issuer} cannot be asked for tokens now; try again`);
    }
  }
}

/** Each part is encoded as in a form (RFC 6749, section 2.3.1). */
function basic(clientId: string, clientSecret: string): string {
  return `Basic ${Buffer.from([clientId, clientSecret].map(encodeURIComponent).join(':')).toString('base64')}`;
}

function userOf({ iss, sub }: Claims, name: string): VerifiedLogin['user'] {
  return { issuer: iss, subject: sub, name };
}

/** The clocks of two servers may differ by this. */
const marginMs = 300_000;

/** By its id, or else by what was signed: a signature can have several forms. */
function spentOf(idToken: string, { iss, jti, exp, iat = exp }: Claims): VerifiedLogin['spent'] {
  const signed = idToken.slice(0, idToken.lastIndexOf('.'));
  const what = typeof jti === 'string' && jti !== '' ? `jti\n${iss}\n${jti}` : `token\n${signed}`;
  const untilMs = Math.min(exp, iat + ageSecondsMax) * 1000 + marginMs;
  return { digest: createHash('sha256').update(what).digest('hex'), untilMs };
}
