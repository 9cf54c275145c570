// The certificate of a host, renewed before it ends. Guests never depend on it: without a valid one the host is only not heard.

import { X509Certificate } from 'node:crypto';
import type { Client } from '../../api/client/client.ts';
import { ApiError } from '../../api/errors.ts';
import type { IssuedCertificate } from '../../api/joining.ts';
import { backoffMs } from '../../base/backoff.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import type { TlsTrust } from '../../base/tls/tls-fetch.ts';
import { certificateRequest, signatureOf } from './certificate-request.ts';
import type { HostIdentity } from './identity-file.ts';

export interface CredentialParts {
  readonly identity: HostIdentity;
  readonly client: Pick<Client, 'json'>;
  /** Durable when it resolves. */
  readonly write: (identity: HostIdentity) => Promise<void>;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
}

/** The wall clock is looked at this often: a machine that slept, or whose clock was set, renews at once. */
const lookMs = 60_000;
const retry = { delayMsMin: 5_000, delayMsMax: 300_000 };
/** After a refusal by the server, whatever the clock says. */
const refusedPauseMs = 10_000;
const skewMsMax = 60_000;

export class HostCredentials {
  readonly #parts: CredentialParts;
  #identity: HostIdentity;
  #trust: TlsTrust;
  #sinceMs: number;
  /** Of the life of the certificate. */
  #share: number;
  #refusedMs: number | undefined;
  #wake: AbortController | undefined;
  #skewed = false;

  constructor(parts: CredentialParts) {
    this.#parts = parts;
    this.#identity = parts.identity;
    this.#trust = trustOf(parts.identity);
    this.#sinceMs = parts.clock.monotonicMs();
    this.#share = shareOf(parts.prng);
  }

  /** A new object after each renewal. */
  get trust(): TlsTrust {
    return this.#trust;
  }

  /** A server has not accepted the certificate: it may know nothing of it since it was restored, or a clock may be wrong. */
  refused(): void {
    this.#refusedMs ??= this.#parts.clock.monotonicMs();
    this.#wake?.abort();
  }

  /** A server requested it: the authority of the fleet is being replaced. */
  renewNow(): void {
    this.refused();
  }

  /** Runs until `signal` aborts. Never rejects. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, prng, log } = this.#parts;
    for (let attempt = 0; !signal.aborted; ) {
      let delayMs = lookMs;
      if (this.#isDue()) {
        try {
          await this.#renew(signal);
          attempt = 0;
          delayMs = refusedPauseMs;
        } catch (error) {
          if (signal.aborted) return;
          delayMs = backoffMs(attempt++, retry, prng);
          const fields = { error: describeError(error), delayMs: Math.round(delayMs) };
          if (error instanceof ApiError && error.code === 'Unauthenticated')
            log.error('the certificate of this host is not renewed; its guests run on', fields);
          else log.warn('cannot renew the certificate of this host yet', fields);
        }
      }
      const wake = new AbortController();
      // A refusal ends the pause between looks, never that between tries.
      if (attempt === 0 && delayMs === lookMs) this.#wake = wake;
      await sleep(clock, delayMs, AbortSignal.any([signal, wake.signal]));
      this.#wake = undefined;
    }
  }

  #isDue(): boolean {
    if (this.#refusedMs !== undefined) return true;
    const { clock } = this.#parts;
    const { fromMs, toMs } = lifeOf(this.#identity.certificate);
    const dueMs = (toMs - fromMs) * this.#share;
    return clock.nowMs() >= fromMs + dueMs || clock.monotonicMs() - this.#sinceMs >= dueMs;
  }

  async #renew(signal: AbortSignal): Promise<void> {
    const { client, clock, log, prng, write } = this.#parts;
    const { key, hostName, certificate } = this.#identity;
    const request = await certificateRequest(key, hostName);
    const body = { certificate, request, signature: signatureOf(request, key) };
    const answer = await client.json<IssuedCertificate>('/v1/renew', {
      method: 'POST',
      body,
      signal,
      repeatable: true,
    });
    const { authorities } = this.#identity;
    this.#noteSkew(answer.serverTimeMs);
    this.#identity = {
      ...this.#identity,
      certificate: answer.certificate,
      ...(authorities === undefined || !isOwn(authorities, answer.authorities)
        ? {}
        : { authorities: answer.authorities }),
    };
    await write(this.#identity).catch((error: unknown) =>
      log.warn('cannot write the certificate of this host to its disk', { error: describeError(error) }),
    );
    this.#trust = trustOf(this.#identity);
    this.#sinceMs = clock.monotonicMs();
    this.#share = shareOf(prng);
    this.#refusedMs = undefined;
    log.debug('renewed the certificate of this host', { notAfterMs: answer.notAfterMs });
  }

  #noteSkew(serverTimeMs: number): void {
    const skewMs = Math.round(this.#parts.clock.nowMs() - serverTimeMs);
    const skewed = Math.abs(skewMs) > skewMsMax;
    if (skewed && !this.#skewed)
      this.#parts.log.warn('the clocks of this host and of its server differ; set them by NTP', { skewMs });
    this.#skewed = skewed;
  }
}

/** Two thirds, ± 10 %: hosts that joined together must not renew together. */
function shareOf(prng: Prng): number {
  return (2 / 3) * (0.9 + prng.below(2001) / 10_000);
}

/** From when the certificate was issued. */
function lifeOf(certificate: string): { readonly fromMs: number; readonly toMs: number } {
  const { validFromDate, validToDate } = new X509Certificate(certificate);
  return { fromMs: validFromDate.getTime(), toMs: validToDate.getTime() };
}

function trustOf({ authorities, certificate, key }: HostIdentity): TlsTrust {
  return { ...(authorities === undefined ? {} : { ca: authorities }), cert: certificate, key };
}

/** Whether the authorities are those of the fleet, which it may change; a file that the user named stays. */
function isOwn(known: string, told: string): boolean {
  const roots = told.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  const digests = new Set(roots.map((pem) => new X509Certificate(pem).fingerprint256));
  return (known.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? []).some((pem) =>
    digests.has(new X509Certificate(pem).fingerprint256),
  );
}
