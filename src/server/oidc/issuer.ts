// One issuer of ID tokens: its metadata and its keys. Tokens of strangers reach it, so it bounds what they can make the server
// fetch: one fetch at a time, a cooldown after each, and a memory of unknown key ids. While the issuer is down, its last keys
// are used for an hour.

import { createLocalJWKSet, type JSONWebKeySet, type JWTVerifyGetKey } from 'jose';
import { ApiError } from '../../api/errors.ts';
import { discover, type ProviderMetadata } from '../../api/login/discovery.ts';
import { fetchJson, type Web } from '../../base/fetch-json.ts';
import { isRecord } from '../../base/is-record.ts';
import { describeError, type Logger } from '../../base/log.ts';

interface Keys {
  readonly find: JWTVerifyGetKey;
  readonly ids: ReadonlySet<string>;
  readonly readAtMs: number;
}

const minute = 60_000;
const keysFreshMs = 10 * minute;
const keysUsableMs = 60 * minute;
const metadataFreshMs = 60 * minute;
const cooldownMs = 30_000;
const cooldownAfterFailureMs = 5_000;
const unknownKeptMs = 5 * minute;
const unknownMax = 1_000;
const keyIdMax = 256;

export class Issuer {
  readonly url: string;
  readonly #web: Web;
  readonly #log: Logger;
  #metadata: { readonly value: ProviderMetadata; readonly readAtMs: number } | undefined;
  #keys: Keys | undefined;
  #reading: Promise<boolean> | undefined;
  #nextReadMs = Number.NEGATIVE_INFINITY;
  /** Key ids that the issuer does not have, with the time until which it is not asked again. */
  readonly #unknown = new Map<string, number>();

  constructor(url: string, { web, log }: { readonly web: Web; readonly log: Logger }) {
    this.url = url;
    this.#web = web;
    this.#log = log;
  }

  /** The key of a token by its header, for jose. Throws `Unavailable` when the keys cannot be read. */
  readonly key: JWTVerifyGetKey = async (header, token) => {
    const kid = header.kid === undefined ? undefined : String(header.kid); // as the token has it: it may be anything
    if (kid !== undefined && kid.length > keyIdMax)
      throw new ApiError('Unauthenticated', `the token is refused: its key id is over ${keyIdMax} characters`);
    const wasAsked = this.#needsKeys(kid) && (await this.#readKeys());
    const keys = this.#keys;
    if (keys === undefined || this.#now() - keys.readAtMs > keysUsableMs)
      throw new ApiError('Unavailable', `the keys of the issuer ${this.url} cannot be read now; try again`);
    if (wasAsked && kid !== undefined && !keys.ids.has(kid)) this.#rememberUnknown(kid);
    return keys.find(header, token);
  };

  /** Throws an `Error` that says why there is none. */
  async metadata(): Promise<ProviderMetadata> {
    const known = this.#metadata;
    if (known !== undefined && this.#now() - known.readAtMs < metadataFreshMs) return known.value;
    const value = await discover(this.#web, this.url);
    this.#metadata = { value, readAtMs: this.#now() };
    return value;
  }

  #now(): number {
    return this.#web.clock.monotonicMs();
  }

  #needsKeys(kid: string | undefined): boolean {
    const keys = this.#keys;
    if (keys === undefined || this.#now() - keys.readAtMs > keysFreshMs) return true;
    return kid !== undefined && !keys.ids.has(kid) && (this.#unknown.get(kid) ?? 0) <= this.#now();
  }

  #rememberUnknown(kid: string): void {
    const [oldest] = this.#unknown.keys();
    if (oldest !== undefined && this.#unknown.size >= unknownMax) this.#unknown.delete(oldest);
    this.#unknown.delete(kid); // set again, it comes last
    this.#unknown.set(kid, this.#now() + unknownKeptMs);
  }

  /** Several callers share one reading. False: they were not read, because that failed, or during the cooldown. */
  async #readKeys(): Promise<boolean> {
    if (this.#reading === undefined && this.#now() < this.#nextReadMs) return false;
    this.#reading ??= this.#read().finally(() => (this.#reading = undefined));
    return this.#reading;
  }

  async #read(): Promise<boolean> {
    try {
      const { jwksUri } = await this.metadata();
      const { status, json } = await fetchJson(this.#web, jwksUri);
      if (status !== 200) throw new Error(`${jwksUri}: the answer has the status ${status}`);
      if (!isKeySet(json)) throw new Error(`${jwksUri}: the answer is not a set of keys`);
      const ids = new Set(json.keys.flatMap(({ kid }) => (typeof kid === 'string' ? [kid] : [])));
      this.#keys = { find: createLocalJWKSet(json), ids, readAtMs: this.#now() };
      this.#nextReadMs = this.#now() + cooldownMs;
      return true;
    } catch (error) {
      this.#metadata = undefined; // the keys may be elsewhere now
      this.#nextReadMs = this.#now() + cooldownAfterFailureMs;
      this.#log.warn('the keys of an issuer cannot be read', { issuer: this.url, error: describeError(error) });
      return false;
    }
  }
}

function isKeySet(json: unknown): json is JSONWebKeySet {
  return isRecord(json) && Array.isArray(json['keys']) && json['keys'].every(isRecord);
}
