// Prepares spares with pipelines of GitLab. A pipeline belongs to an attempt by its variables; a second one is triggered only after a search
// has found none.

import type { Clock } from '../../../../base/clock.ts';
import { hiding } from '../../plain-line.ts';
import type { Provisioner, ProvisionOutcome, ReleaseOutcome, SpareRun, SpareWork } from '../../provisioner.ts';
import { poll } from '../poll.ts';
import type { GitlabConfig } from '../provisioner-config.ts';
import { readCaFile, readTokenFile, shownFault } from '../secret-file.ts';
import { actionVariable, type Failure, GitlabApi, isFailure, type Pipeline, spareVariable } from './gitlab-api.ts';
import { pipelineNote, pipelineState } from './pipeline-state.ts';

export interface GitlabParts {
  /** Of the configuration, for messages: `provisioners.pipelines.gitlab`. */
  readonly field: string;
  readonly clock: Clock;
}

const attemptVariable = 'BERTH_SPARE_ATTEMPT';
/** Clocks of two systems may differ. */
const skewMs = 3_600_000;

export class GitlabProvisioner implements Provisioner {
  readonly #config: GitlabConfig;
  readonly #parts: GitlabParts;

  constructor(config: GitlabConfig, parts: GitlabParts) {
    this.#config = config;
    this.#parts = parts;
  }

  provision(work: SpareWork, run: SpareRun): Promise<ProvisionOutcome> {
    return this.#carryOut('provision', work, run);
  }

  async release(work: SpareWork, run: SpareRun): Promise<ReleaseOutcome> {
    if (this.#config.release === 'none') return { is: 'done' };
    const outcome = await this.#carryOut('release', work, run);
    return outcome.is === 'done' ? { is: 'done' } : { is: 'failed', why: outcome.why };
  }

  async #carryOut(action: 'provision' | 'release', work: SpareWork, run: SpareRun): Promise<ProvisionOutcome> {
    let api: GitlabApi;
    try {
      api = await this.#api();
    } catch (error) {
      // The call of before is not judged by this.
      return { is: run.resumed ? 'unknown' : 'failed', why: shownFault(error) };
    }
    const known = run.resumed ? await this.#search(api, action, work, run) : undefined;
    if (isFailure(known)) return { is: 'unknown', why: `a pipeline may run, and it cannot be searched: ${known.why}` };
    const pipeline = known ?? (await this.#trigger(api, action, work, run));
    if (isFailure(pipeline)) return this.#notTriggered(pipeline);
    return this.#follow(api, pipeline, run);
  }

  /** One that may have been triggered although there was no answer is searched. */
  async #trigger(
    api: GitlabApi,
    action: 'provision' | 'release',
    work: SpareWork,
    run: SpareRun,
  ): Promise<Pipeline | Failure> {
    const variables = { ...this.#config.variables, ...variablesFor(work), ...keyOf(action, work) };
    const triggered = await api.trigger(variables, run.signal);
    if (!isFailure(triggered) || triggered.perhaps === undefined) return triggered;
    const found = await this.#search(api, action, work, run);
    if (isFailure(found)) return { why: `${triggered.why}; ${found.why}`, perhaps: true };
    return found ?? { why: triggered.why };
  }

  #notTriggered({ why, perhaps, refused }: Failure): ProvisionOutcome {
    if (perhaps === true) return { is: 'unknown', why: `a pipeline may run: ${why}` };
    return { is: 'failed', why, ...(refused === undefined ? {} : { refused }) };
  }

  /** Repeats the search while GitLab does not answer. Undefined: there is no pipeline. */
  async #search(
    api: GitlabApi,
    action: 'provision' | 'release',
    work: SpareWork,
    { signal }: SpareRun,
  ): Promise<Pipeline | undefined | Failure> {
    let trouble: Failure = { why: 'GitLab does not answer' };
    const found = await poll(async () => {
      const answer = await api.search(keyOf(action, work), { sinceMs: work.createdAtMs - skewMs, signal });
      if (!isFailure(answer)) return { pipeline: answer };
      trouble = { why: answer.why };
      return answer.refused === undefined ? 'failing' : trouble;
    }, this.#polling(signal));
    if (found === undefined || 'why' in found) return trouble;
    return found.pipeline;
  }

  async #follow(api: GitlabApi, { id, webUrl }: Pipeline, run: SpareRun): Promise<ProvisionOutcome> {
    const named = `pipeline ${id}${webUrl === undefined ? '' : ` (${webUrl})`}`;
    let told: string | undefined;
    const outcome = await poll<ProvisionOutcome>(async () => {
      const now = await api.pipeline(id, run.signal);
      if (isFailure(now)) {
        if (now.refused === undefined) return 'failing';
        return { is: 'unknown', why: `${named} cannot be read: ${now.why}` };
      }
      const state = pipelineState(now.status);
      if (state === 'done') return { is: 'done' };
      if (state === 'failed') return { is: 'failed', why: `${named} is ${now.status}` };
      const note = `${named}: ${pipelineNote(now.status)}`;
      if (note !== told) run.progress((told = note));
      return 'later';
    }, this.#polling(run.signal));
    const seconds = Math.round(this.#config.timeoutMs / 1_000);
    return outcome ?? { is: 'failed', why: `${named} has not ended within ${seconds} s` };
  }

  #polling(signal: AbortSignal) {
    const { pollMs, timeoutMs } = this.#config;
    return { clock: this.#parts.clock, pollMs, timeoutMs, signal };
  }

  /** With the secrets that are in their files now. */
  async #api(): Promise<GitlabApi> {
    const { url, project, ref, triggerTokenFile, apiTokenFile, caFile } = this.#config;
    const { field, clock } = this.#parts;
    const triggerToken = await readTokenFile(triggerTokenFile, `${field}.triggerTokenFile`);
    const apiToken = await readTokenFile(apiTokenFile, `${field}.apiTokenFile`);
    const ca = await readCaFile(caFile, `${field}.caFile`);
    const called = { url: url.replace(/\/+$/, ''), project, ref, triggerToken, apiToken, ca };
    return new GitlabApi(called, { clock, hide: hiding([triggerToken, apiToken]) });
  }
}

/** What the pipeline of an attempt is found by. */
function keyOf(action: 'provision' | 'release', { id, attempt }: SpareWork): Record<string, string> {
  return { [spareVariable]: id, [attemptVariable]: String(attempt), [actionVariable]: action };
}

function variablesFor({ name, project, pool, host, cpus, memoryMiB, diskGiB, variables }: SpareWork) {
  return {
    BERTH_SPARE_NAME: name,
    BERTH_SPARE_PROJECT: project,
    BERTH_SPARE_POOL: pool ?? '',
    BERTH_SPARE_HOST: host.name,
    BERTH_SPARE_ADDRESS: host.address ?? '',
    BERTH_SPARE_CPUS: String(cpus),
    BERTH_SPARE_MEMORY_MIB: String(memoryMiB),
    BERTH_SPARE_DISK_GIB: String(diskGiB),
    // Under a prefix: runners obey some variables, such as PATH and GIT_STRATEGY.
    ...Object.fromEntries(Object.entries(variables).map(([key, value]) => [`BERTH_VAR_${key}`, value])),
  };
}
