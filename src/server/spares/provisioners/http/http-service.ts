// The calls of a service that makes spares: POST to make one, with the spare's id as idempotency key, GET to find it, DELETE to undo it.
// Without a URL to search there is no way to know whether a call that broke off was carried out.

import type { Clock } from '../../../../base/clock.ts';
import { describeError } from '../../../../base/log.ts';
import { isRecord } from '../../../../base/is-record.ts';
import { type HttpAnswer, type HttpCall, httpCall, jsonOf } from '../../http-call.ts';
import { type Hide, plainLine } from '../../plain-line.ts';

export interface HttpService {
  readonly url: string;
  readonly searchUrl: string | undefined;
  readonly releaseUrl: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
  readonly ca: string | undefined;
}

export type ServiceState =
  | { readonly is: 'absent' }
  | { readonly is: 'running'; readonly note: string }
  | { readonly is: 'done'; readonly found: Readonly<Record<string, string>> }
  | { readonly is: 'failed'; readonly why: string };

/** `refused`: another attempt would be refused too. `perhaps`: the service may have done it. */
export interface ServiceFailure {
  readonly is: 'unanswered';
  readonly why: string;
  readonly refused?: true;
  readonly perhaps?: true;
}

export class HttpServiceApi {
  readonly #service: HttpService;
  readonly #clock: Clock;
  readonly #hide: Hide;

  constructor(service: HttpService, { clock, hide }: { readonly clock: Clock; readonly hide: Hide }) {
    this.#service = service;
    this.#clock = clock;
    this.#hide = hide;
  }

  get searchable(): boolean {
    return this.#service.searchUrl !== undefined;
  }

  get releasable(): boolean {
    return this.#service.releaseUrl !== undefined;
  }

  async make(
    spareId: string,
    body: unknown,
    signal?: AbortSignal,
  ): Promise<Exclude<ServiceState, { is: 'absent' }> | ServiceFailure> {
    const answer = await this.#call(
      {
        method: 'POST',
        url: this.#service.url,
        headers: { 'content-type': 'application/json', 'idempotency-key': spareId },
        body: JSON.stringify(body),
      },
      signal,
    );
    if ('is' in answer) return answer;
    const { status } = answer;
    if (status === 202 && !this.searchable)
      return { is: 'failed', why: 'it answered 202, accepted, and without searchUrl its end cannot be known' };
    if (status === 202) return { is: 'running', note: 'accepted' };
    if (status >= 200 && status < 300) return this.#stateOf(answer);
    return { ...this.#failureOf(answer), ...(status >= 500 ? { perhaps: true } : {}) };
  }

  /** It has a URL to search. */
  async search(spareId: string, signal?: AbortSignal): Promise<ServiceState | ServiceFailure> {
    const answer = await this.#call({ method: 'GET', url: at(this.#service.searchUrl, spareId) }, signal);
    if ('is' in answer) return answer;
    if (answer.status === 404) return { is: 'absent' };
    if (answer.status === 200) return this.#stateOf(answer);
    return this.#failureOf(answer);
  }

  /** It has a URL to release. Undefined: it is gone, or was never there. */
  async release(spareId: string, signal?: AbortSignal): Promise<ServiceFailure | undefined> {
    const url = at(this.#service.releaseUrl, spareId);
    const answer = await this.#call(
      { method: 'DELETE', url, headers: { 'idempotency-key': `${spareId}-release` } },
      signal,
    );
    if ('is' in answer) return answer;
    const { status } = answer;
    return (status >= 200 && status < 300) || status === 404 || status === 410 ? undefined : this.#failureOf(answer);
  }

  async #call(call: HttpCall, signal?: AbortSignal): Promise<HttpAnswer | ServiceFailure> {
    const { headers, ca } = this.#service;
    try {
      return await httpCall(this.#clock, {
        ...call,
        headers: { ...headers, ...call.headers },
        ...(ca === undefined ? {} : { ca }),
        ...(signal === undefined ? {} : { signal }),
      });
    } catch (error) {
      const sent = error instanceof Error && 'sent' in error && error.sent === true;
      return { is: 'unanswered', why: this.#hide(describeError(error)), ...(sent ? { perhaps: true } : {}) };
    }
  }

  /** `{status: running | done | failed, message, name, address}`; without a status it is done. */
  #stateOf(answer: HttpAnswer): Exclude<ServiceState, { is: 'absent' }> {
    const json = jsonOf(answer);
    const body = isRecord(json) ? json : {};
    const { status = 'done', message, name, address } = body;
    const told = typeof message === 'string' ? plainLine(this.#hide(message), 300) : '';
    if (status === 'failed') return { is: 'failed', why: told === '' ? 'the service says that it failed' : told };
    if (status === 'running') return { is: 'running', note: told };
    if (status !== 'done')
      return { is: 'failed', why: 'the service answered with an unknown status: neither running, done nor failed' };
    const texts = Object.entries({ name, address }).flatMap(([key, text]) =>
      typeof text === 'string' ? [[key, plainLine(text, 253)] as const] : [],
    );
    return { is: 'done', found: Object.fromEntries(texts) };
  }

  /** Redirects and 4xx are refusals, but those that say "later": 408, 425 and 429. What it says may have what it was sent. */
  #failureOf(answer: HttpAnswer): ServiceFailure {
    const { status } = answer;
    const json = jsonOf(answer);
    const told = isRecord(json) ? (json['message'] ?? json['detail'] ?? json['error']) : undefined;
    const refused = status >= 300 && status < 500 && ![408, 425, 429].includes(status);
    return {
      is: 'unanswered',
      why: `the service answered ${status}${typeof told === 'string' ? `: ${plainLine(this.#hide(told), 300)}` : ''}`,
      ...(refused ? { refused: true } : {}),
    };
  }
}

/** Its pattern was checked when the configuration was read. */
function at(url: string | undefined, spareId: string): string {
  return (url ?? '').replaceAll('{spare}', encodeURIComponent(spareId));
}
