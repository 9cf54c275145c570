// The routes by which machines become hosts and renew their certificates. Every certificate that leaves is one whose serial is durable.

import { createHash, timingSafeEqual, verify, X509Certificate } from 'node:crypto';
import { ApiError } from '../../api/errors.ts';
import { noAuthority } from '../../core/operations/access/authority-rotation.ts';
import type { IssuedCertificate } from '../../api/joining.ts';
import { joinRoutes as routes } from '../../api/routes/joining.ts';
import { newId } from '../../base/ids.ts';
import { issuingOf, servingOf } from '../../core/operations/access/authority.ts';
import { joinHost, renewCertificate, type SignedCertificate } from '../../core/operations/access/join.ts';
import { createJoinToken, deleteJoinToken, joinTokenView } from '../../core/operations/access/join-token.ts';
import { keys } from '../../core/state/keys.ts';
import type { Authority } from '../../core/state/records.ts';
import type { Decider } from '../decide.ts';
import type { Caller } from '../http/caller.ts';
import { fingerprintOf } from '../../base/tls/fingerprint.ts';
import { decideFor } from '../http/on-behalf.ts';
import { bind } from '../http/routes/bind.ts';
import type { Route } from '../http/route.ts';
import { readCertificate } from './host-certificate.ts';
import { makeJoinToken, readJoinToken } from './join-token-text.ts';

/** What a server that speaks TLS has; others answer that they do not. */
export interface JoinParts {
  readonly randomSecret: (length: number) => Uint8Array;
  /** Whether this server shows a certificate of the fleet's own authority. */
  readonly ownCertificate: boolean;
}

export function joinRoutes(decider: Decider, parts: JoinParts | undefined): Route[] {
  const joining = new Joining(decider, parts);
  return [
    bind(routes.authorities, () => ({
      status: 200,
      json: {
        items: joining.authority.generations.map(({ root: { certificate } }) => ({
          certificate,
          fingerprint: fingerprintOf(certificate),
        })),
      },
    })),
    bind(routes.createToken, async ({ body: { pool, labels = {}, uses, expiresInMs } }, request) => {
      const { id, hash, text } = joining.newToken();
      const input = { id, hash, pool, labels, usesMax: uses, expiresInMs };
      const { decision } = await decideFor(decider, request, (snapshot, ctx) => createJoinToken(snapshot, input, ctx));
      return { status: 201, json: { ...joinTokenView(decision.token), token: text } };
    }),
    bind(routes.listTokens, () => ({
      status: 200,
      json: { items: [...decider.cache.listCommitted('joinToken')].map(({ value }) => joinTokenView(value)) },
    })),
    bind(routes.deleteToken, async ({ params }, request) => {
      await decideFor(decider, request, (snapshot) => deleteJoinToken(snapshot, params.name));
      return { status: 200, json: {} };
    }),
    bind(routes.join, async ({ body: { token, host, request } }, { caller }) => {
      const { principal } = caller;
      const isHost = principal.kind === 'host' && principal.host === host;
      return { status: 200, json: await joining.join({ token, host, request, isHost, caller }) };
    }),
    bind(routes.renew, async ({ body }, { caller }) => ({ status: 200, json: await joining.renew(body, caller) })),
  ];
}

const signTries = 3;

class Joining {
  readonly #decider: Decider;
  readonly #parts: JoinParts | undefined;

  constructor(decider: Decider, parts: JoinParts | undefined) {
    this.#decider = decider;
    this.#parts = parts;
  }

  get authority(): Authority {
    const entry = this.#decider.cache.committed('authority', keys.authority);
    if (entry) return entry.value;
    throw noAuthority();
  }

  newToken(): ReturnType<typeof makeJoinToken> {
    const { randomSecret, ownCertificate } = this.#secure();
    const { root } = servingOf(this.authority);
    return makeJoinToken(randomSecret, ownCertificate ? fingerprintOf(root.certificate) : undefined);
  }

  async join({
    token: text,
    host,
    request,
    isHost,
    caller,
  }: {
    readonly token: string;
    readonly host: string;
    readonly request: string;
    readonly isHost: boolean;
    readonly caller: Caller;
  }): Promise<IssuedCertificate> {
    this.#secure();
    const tokenId = this.#checkedToken(text);
    const { publicKeyOf } = await import('./certificates.ts');
    const publicKey = await publicKeyOf(request, 'request');
    const keyHash = sha256(publicKey);
    for (let tries = 0; tries < signTries; tries++) {
      const { clock, prng, cache } = this.#decider;
      const known = cache.committed('host', keys.host(host))?.value.metadata.id;
      const hostId = known ?? newId('host', Math.floor(clock.nowMs()), prng);
      const signed = await this.#sign({ host, hostId, publicKey });
      const input = { tokenId, host, hostId, keyHash, signed, isHost };
      const { decision } = await decideFor(this.#decider, { caller }, (snapshot, ctx) =>
        joinHost(snapshot, input, ctx),
      );
      if (decision.chain !== undefined) return this.#answer(host, decision.chain);
    }
    throw new ApiError('Unavailable', `host "${host}" was created and removed meanwhile; try again`);
  }

  async renew(
    body: { readonly certificate: string; readonly request: string; readonly signature: string },
    caller: Caller,
  ): Promise<IssuedCertificate> {
    this.#secure();
    const last = this.#ownCertificate(body.certificate);
    const shown = readCertificate(last);
    const { publicKeyOf } = await import('./certificates.ts');
    const publicKey = await publicKeyOf(body.request, 'request');
    const digest = last.publicKey.asymmetricKeyType === 'ec' ? 'sha256' : null;
    const proof = Buffer.from(body.signature, 'base64');
    const sameKey = last.publicKey.export({ type: 'spki', format: 'der' }).equals(publicKey);
    if (shown === undefined || !sameKey || !verify(digest, Buffer.from(body.request), last.publicKey, proof))
      throw new ApiError('Unauthenticated', 'the request is not signed by the key of the certificate');
    const { host, hostId, serial: lastSerial } = shown;
    const input = {
      ...{ host, hostId, lastSerial, keyHash: sha256(publicKey), lastNotAfterMs: last.validToDate.getTime() },
      signed: await this.#sign({ host, hostId, publicKey }),
    };
    const { decision } = await decideFor(this.#decider, { caller }, (snapshot, ctx) =>
      renewCertificate(snapshot, input, ctx),
    );
    return this.#answer(host, decision.chain ?? input.signed.chain);
  }

  #secure(): JoinParts {
    if (this.#parts) return this.#parts;
    throw new ApiError(
      'Conflict',
      'this server speaks plain HTTP, where no certificate can be shown; start it with --tls, or give the agent what "berth host token NAME" prints',
    );
  }

  /** The id of a token whose secret this is. In the same time for every wrong one. */
  #checkedToken(text: string): string {
    const token = readJoinToken(text);
    if (!token)
      throw new ApiError('Unauthenticated', 'this is not a whole join token; copy it again', { field: 'token' });
    const known = this.#decider.cache.committed('joinToken', keys.joinToken(token.id))?.value.hash;
    const same = timingSafeEqual(Buffer.from(token.hash), Buffer.from(known ?? '0'.repeat(token.hash.length)));
    if (same && known !== undefined) return token.id;
    throw new ApiError('Unauthenticated', 'the join token is not valid; have a new one made', { field: 'token' });
  }

  /** A certificate that this fleet has issued to a host, expired or not. */
  #ownCertificate(pem: string): X509Certificate {
    let certificate: X509Certificate;
    try {
      certificate = new X509Certificate(pem);
    } catch (cause) {
      throw new ApiError('InvalidRequest', 'certificate: this is no certificate', { field: 'certificate', cause });
    }
    const ours = this.authority.generations.some(({ hosts }) => {
      const issuer = new X509Certificate(hosts.certificate);
      return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
    });
    if (ours) return certificate;
    throw new ApiError('Unauthenticated', 'the certificate is of another authority; join again');
  }

  async #sign(about: {
    readonly host: string;
    readonly hostId: string;
    readonly publicKey: Uint8Array;
  }): Promise<SignedCertificate> {
    const { randomSecret } = this.#secure();
    const { issueHostCertificate, newSerial } = await import('./certificates.ts');
    const nowMs = Math.floor(this.#decider.clock.nowMs());
    const { authority } = this;
    const generation = issuingOf(authority);
    const serial = newSerial(randomSecret);
    const issued = await issueHostCertificate({ nowMs, randomSecret, generation }, { ...about, serial });
    const trusts = authority.generations.map(({ id }) => id);
    return { serial, authority: generation.id, trusts, issuedAtMs: nowMs, ...issued };
  }

  #answer(host: string, chain: string): IssuedCertificate {
    const { clock, cache } = this.#decider;
    const certificate = new X509Certificate(chain);
    const hostId = readCertificate(certificate)?.hostId ?? cache.committed('host', keys.host(host))?.value.metadata.id;
    return {
      host,
      hostId: hostId ?? '',
      certificate: chain,
      authorities: this.authority.generations.map(({ root }) => root.certificate).join('\n'),
      notAfterMs: certificate.validToDate.getTime(),
      serverTimeMs: Math.floor(clock.nowMs()),
    };
  }
}

function sha256(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}
