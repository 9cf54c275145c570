// The calls of GitLab's API that spares need: trigger a pipeline, find the pipeline of a spare by its variable, read the state of one.
// A pipeline has no idempotency key: search before each trigger.

import type { Clock } from '../../../../base/clock.ts';
import { describeError } from '../../../../base/log.ts';
import { isRecord } from '../../../../base/is-record.ts';
import { type HttpAnswer, type HttpCall, httpCall, jsonOf } from '../../http-call.ts';
import { type Hide, plainLine } from '../../plain-line.ts';

/** The variable that says whose pipeline it is. */
export const spareVariable = 'BERTH_SPARE_ID';
/** `provision` or `release`. */
export const actionVariable = 'BERTH_SPARE_ACTION';

export interface GitlabProject {
  /** Without a slash at the end. */
  readonly url: string;
  readonly project: string;
  readonly ref: string;
  readonly triggerToken: string;
  /** Of an account that may read pipelines and their variables; a trigger token may not. */
  readonly apiToken: string;
  readonly ca: string | undefined;
}

export interface Pipeline {
  readonly id: number;
  readonly status: string;
  readonly webUrl: string | undefined;
}

/** `refused`: another attempt would be refused too. `perhaps`: GitLab may have done it. */
export type Failure = { readonly why: string; readonly refused?: true; readonly perhaps?: true };

/** Pipelines looked through for one spare, and how many a page has at most. */
const searchMax = 500;
const pageSize = 100;

export class GitlabApi {
  readonly #clock: Clock;
  readonly #project: GitlabProject;
  readonly #hide: Hide;

  constructor(project: GitlabProject, { clock, hide }: { readonly clock: Clock; readonly hide: Hide }) {
    this.#project = project;
    this.#clock = clock;
    this.#hide = hide;
  }

  async trigger(variables: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<Pipeline | Failure> {
    const { ref, triggerToken } = this.#project;
    const form = new URLSearchParams({ token: triggerToken, ref });
    for (const [name, value] of Object.entries(variables)) form.set(`variables[${name}]`, value);
    const asked = await this.#call({
      method: 'POST',
      url: this.#at('trigger/pipeline'),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: form.toString(),
      ...(signal === undefined ? {} : { signal }),
    });
    if ('why' in asked) return asked;
    const pipeline = asked.status === 201 ? pipelineOf(jsonOf(asked)) : undefined;
    if (pipeline !== undefined) return pipeline;
    // 2xx without a pipeline, and errors of a proxy after it has passed the request on.
    if (asked.status < 300 || asked.status >= 500) return { ...this.#failureOf(asked), perhaps: true };
    return this.#failureOf(asked);
  }

  /** The newest pipeline with all of these variables that changed after `sinceMs`; undefined: there is none. */
  async search(
    wanted: Readonly<Record<string, string>>,
    { sinceMs, signal }: { readonly sinceMs: number; readonly signal?: AbortSignal },
  ): Promise<Pipeline | undefined | Failure> {
    const updatedAfter = new Date(Math.max(0, sinceMs)).toISOString();
    let seen = 0;
    for (let page = '1'; page !== ''; ) {
      const query = new URLSearchParams({
        source: 'trigger',
        updated_after: updatedAfter,
        order_by: 'id',
        sort: 'desc',
      });
      query.set('per_page', String(pageSize));
      query.set('page', page);
      const asked = await this.#read(`pipelines?${query.toString()}`, signal);
      if ('why' in asked) return asked;
      const listed = jsonOf(asked);
      if (!Array.isArray(listed)) return { why: 'GitLab did not answer with a list of pipelines' };
      for (const each of listed) {
        const pipeline = pipelineOf(each);
        if (pipeline === undefined) return { why: 'GitLab answered with a pipeline without id or status' };
        if ((seen += 1) > searchMax)
          return { why: `more than ${searchMax} pipelines were triggered since; search them by hand` };
        const has = await this.#has(pipeline.id, wanted, signal);
        if (typeof has !== 'boolean') return has;
        if (has) return pipeline;
      }
      page = asked.header('x-next-page') ?? '';
      if (page !== '' && !/^\d{1,9}$/.test(page)) return { why: 'GitLab named a next page that is no number' };
    }
    return undefined;
  }

  async pipeline(id: number, signal?: AbortSignal): Promise<Pipeline | Failure> {
    const asked = await this.#read(`pipelines/${id}`, signal);
    if ('why' in asked) return asked;
    return pipelineOf(jsonOf(asked)) ?? { why: 'GitLab answered with a pipeline without id or status' };
  }

  async #has(id: number, wanted: Readonly<Record<string, string>>, signal?: AbortSignal): Promise<boolean | Failure> {
    const asked = await this.#read(`pipelines/${id}/variables`, signal);
    if ('why' in asked) return asked.status === 404 ? false : asked; // it was deleted meanwhile
    const listed = jsonOf(asked);
    if (!Array.isArray(listed)) return { why: 'GitLab did not answer with a list of variables' };
    return Object.entries(wanted).every(([name, value]) =>
      listed.some((each) => isRecord(each) && each['key'] === name && each['value'] === value),
    );
  }

  /** A GET with the token that may read; anything but 200 is a failure. */
  async #read(path: string, signal?: AbortSignal): Promise<HttpAnswer | (Failure & { readonly status?: number })> {
    const { apiToken } = this.#project;
    const asked = await this.#call({
      method: 'GET',
      url: this.#at(path),
      headers: { 'private-token': apiToken },
      ...(signal === undefined ? {} : { signal }),
    });
    if ('why' in asked || asked.status === 200) return asked;
    return { ...this.#failureOf(asked), status: asked.status };
  }

  async #call(call: HttpCall): Promise<HttpAnswer | Failure> {
    const { ca } = this.#project;
    try {
      return await httpCall(this.#clock, { ...call, ...(ca === undefined ? {} : { ca }) });
    } catch (error) {
      const sent = error instanceof Error && 'sent' in error && error.sent === true;
      return { why: `GitLab: ${describeError(error)}`, ...(sent ? { perhaps: true } : {}) };
    }
  }

  #at(path: string): string {
    const { url, project } = this.#project;
    return `${url}/api/v4/projects/${encodeURIComponent(project)}/${path}`;
  }

  /** Redirects and 4xx are refusals, but those that say "later": 408, 425 and 429. */
  #failureOf(answer: HttpAnswer): Failure {
    const { status } = answer;
    const refused = status >= 300 && status < 500 && ![408, 425, 429].includes(status);
    const told = toldBy(jsonOf(answer));
    const why = `GitLab answered ${status}${told === undefined ? '' : `: ${plainLine(this.#hide(told), 300)}`}`;
    return { why, ...(refused ? { refused: true } : {}) };
  }
}

export function isFailure(value: Pipeline | Failure | undefined): value is Failure {
  return value !== undefined && 'why' in value;
}

/** `message` is a text, a list, or lists by field; `error` is a text. */
function toldBy(json: unknown): string | undefined {
  if (!isRecord(json)) return undefined;
  const told = json['message'] ?? json['error'];
  return told === undefined ? undefined : typeof told === 'string' ? told : JSON.stringify(told);
}

function pipelineOf(json: unknown): Pipeline | undefined {
  if (!isRecord(json)) return undefined;
  const { id, status, web_url: webUrl } = json;
  if (typeof id !== 'number' || !Number.isSafeInteger(id) || typeof status !== 'string') return undefined;
  return { id, status: status.slice(0, 64), webUrl: typeof webUrl === 'string' ? plainLine(webUrl, 512) : undefined };
}
