// Prepares spares by a service of the operator's. After a lost answer the spare is searched; where that cannot be done, a person decides.

import type { Clock } from '../../../../base/clock.ts';
import { hiding } from '../../plain-line.ts';
import type { Provisioner, ProvisionOutcome, ReleaseOutcome, SpareRun, SpareWork } from '../../provisioner.ts';
import { poll } from '../poll.ts';
import type { HttpConfig } from '../provisioner-config.ts';
import { readCaFile, readTokenFile, shownFault } from '../secret-file.ts';
import { HttpServiceApi, type ServiceFailure, type ServiceState } from './http-service.ts';

export interface HttpParts {
  /** Of the configuration, for messages: `provisioners.maker.http`. */
  readonly field: string;
  readonly clock: Clock;
}

/** A spare that was accepted may be found only after a moment. */
const absencesMax = 3;

export class HttpProvisioner implements Provisioner {
  readonly #config: HttpConfig;
  readonly #parts: HttpParts;

  constructor(config: HttpConfig, parts: HttpParts) {
    this.#config = config;
    this.#parts = parts;
  }

  async provision(work: SpareWork, run: SpareRun): Promise<ProvisionOutcome> {
    let api: HttpServiceApi;
    try {
      api = await this.#api();
    } catch (error) {
      return { is: run.resumed ? 'unknown' : 'failed', why: shownFault(error) };
    }
    if (run.resumed) {
      if (!api.searchable)
        return { is: 'unknown', why: 'the service may have the call, and without searchUrl it cannot be searched' };
      const found = await this.#search(api, work, run);
      if (found.is === 'unanswered') return { is: 'unknown', why: `the service may have the call: ${found.why}` };
      if (found.is !== 'absent') return this.#follow(api, found, { work, run });
    }
    return this.#make(api, work, run);
  }

  async release(work: SpareWork, run: SpareRun): Promise<ReleaseOutcome> {
    if (this.#config.releaseUrl === undefined) return { is: 'done' };
    try {
      const failure = await (await this.#api()).release(work.id, run.signal);
      return failure === undefined ? { is: 'done' } : { is: 'failed', why: failure.why };
    } catch (error) {
      return { is: 'failed', why: shownFault(error) };
    }
  }

  async #make(api: HttpServiceApi, work: SpareWork, run: SpareRun): Promise<ProvisionOutcome> {
    const made = await api.make(`${work.id}-${work.attempt}`, bodyOf(work), run.signal);
    if (made.is !== 'unanswered') return this.#follow(api, made, { work, run });
    const { why, perhaps, refused } = made;
    if (perhaps === undefined) return { is: 'failed', why, ...(refused === undefined ? {} : { refused }) };
    if (!api.searchable) return { is: 'unknown', why: `${why}; without searchUrl it cannot be searched` };
    const found = await this.#search(api, work, run);
    if (found.is === 'unanswered') return { is: 'unknown', why: `${why}; ${found.why}` };
    return found.is === 'absent' ? { is: 'failed', why } : this.#follow(api, found, { work, run });
  }

  /** Repeats the search while the service does not answer. */
  async #search(api: HttpServiceApi, { id }: SpareWork, { signal }: SpareRun): Promise<ServiceState | ServiceFailure> {
    let trouble: ServiceFailure = { is: 'unanswered', why: 'the service does not answer' };
    const found = await poll<ServiceState | ServiceFailure>(async () => {
      const answer = await api.search(id, signal);
      if (answer.is !== 'unanswered') return answer;
      trouble = answer;
      return answer.refused === undefined ? 'failing' : answer;
    }, this.#polling(signal));
    return found ?? trouble;
  }

  async #follow(
    api: HttpServiceApi,
    first: Exclude<ServiceState, { is: 'absent' }>,
    { work, run }: { readonly work: SpareWork; readonly run: SpareRun },
  ): Promise<ProvisionOutcome> {
    const known = endOf(first);
    if (known !== undefined) return known;
    if (!api.searchable)
      return { is: 'failed', why: 'the spare is being made, and without searchUrl its end cannot be known' };
    let absences = 0;
    let told: string | undefined;
    const outcome = await poll<ProvisionOutcome>(async () => {
      const now = await api.search(work.id, run.signal);
      if (now.is === 'unanswered')
        return now.refused === undefined
          ? 'failing'
          : { is: 'unknown', why: `it cannot be searched any more: ${now.why}` };
      if (now.is === 'absent') {
        absences += 1;
        return absences < absencesMax ? 'later' : { is: 'failed', why: 'the service does not know the spare any more' };
      }
      absences = 0;
      if (now.is === 'running' && now.note !== '' && now.note !== told) run.progress((told = now.note));
      return endOf(now) ?? 'later';
    }, this.#polling(run.signal));
    return outcome ?? { is: 'failed', why: `it was not made within ${Math.round(this.#config.timeoutMs / 1_000)} s` };
  }

  #polling(signal: AbortSignal) {
    const { pollMs, timeoutMs } = this.#config;
    return { clock: this.#parts.clock, pollMs, timeoutMs, signal };
  }

  /** With the secrets that are in their files now. */
  async #api(): Promise<HttpServiceApi> {
    const { url, searchUrl, releaseUrl, headers, secretHeaders = {}, caFile } = this.#config;
    const { field, clock } = this.#parts;
    const secrets: Record<string, string> = {};
    for (const [name, path] of Object.entries(secretHeaders))
      secrets[name] = await readTokenFile(path, `${field}.secretHeaders.${name}`);
    const ca = await readCaFile(caFile, `${field}.caFile`);
    // Services repeat the token without the scheme before it.
    const hidden = Object.values(secrets).flatMap((secret) => [secret, ...secret.split(' ').slice(1)]);
    const service = { url, searchUrl, releaseUrl, headers: { ...headers, ...secrets }, ca };
    return new HttpServiceApi(service, { clock, hide: hiding(hidden) });
  }
}

function endOf(state: Exclude<ServiceState, { is: 'absent' }>): ProvisionOutcome | undefined {
  if (state.is === 'running') return undefined;
  if (state.is === 'failed') return { is: 'failed', why: state.why };
  const { address, name } = state.found;
  return {
    is: 'done',
    ...(address === undefined ? {} : { address }),
    ...(name === undefined ? {} : { name }),
  };
}

function bodyOf({ id, attempt, name, project, pool, host, cpus, memoryMiB, diskGiB, variables }: SpareWork): object {
  const room = { cpus, memoryMiB, diskGiB };
  return { spareId: id, attempt, name, project, pool, host: host.name, address: host.address, ...room, variables };
}
