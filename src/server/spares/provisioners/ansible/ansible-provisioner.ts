// Prepares spares with a playbook, and undoes them with another. A run belongs to an attempt; when it is found, it is never started again.

import type { Clock } from '../../../../base/clock.ts';
import { plainLine } from '../../plain-line.ts';
import type { Provisioner, ProvisionOutcome, ReleaseOutcome, SpareRun, SpareWork } from '../../provisioner.ts';
import type { AnsibleConfig } from '../provisioner-config.ts';
import { shownFault } from '../secret-file.ts';
import { Slots } from '../slots.ts';
import type { PlainVariables } from './playbook-input.ts';
import { type Action, Playbooks, type PlaybookState } from './playbooks.ts';

export interface AnsibleParts {
  readonly field: string;
  readonly directory: string;
  readonly clock: Clock;
  /** No other server uses the store: then what is not found here was never started. */
  readonly alone: boolean;
}

type Ended = Extract<PlaybookState, { is: 'ended' }>;

interface Call {
  readonly playbook: string;
  readonly run: SpareRun;
}

export class AnsibleProvisioner implements Provisioner {
  readonly #config: AnsibleConfig;
  readonly #playbooks: Playbooks;
  readonly #alone: boolean;
  /** A release does not wait for playbooks that hang. */
  readonly #slots: Readonly<Record<Action, Slots>>;

  constructor(config: AnsibleConfig, { alone, ...parts }: AnsibleParts) {
    this.#config = config;
    this.#alone = alone;
    this.#slots = { provision: new Slots(config.concurrency), release: new Slots(config.concurrency) };
    this.#playbooks = new Playbooks(config, parts);
  }

  async provision(work: SpareWork, run: SpareRun): Promise<ProvisionOutcome> {
    const { id, host } = work;
    // As --limit it could mean other hosts, or a file.
    if (!/^[A-Za-z0-9][A-Za-z0-9._-]*$/.test(host.name))
      return { is: 'failed', why: 'the name of the host cannot be a pattern of Ansible', refused: true };
    if (!(await this.#isOf(work, 'provision'))) {
      if (run.resumed && !this.#alone)
        return { is: 'unknown', why: 'another server may have started the playbook; look for it on that machine' };
      await this.#playbooks.stop(id, 'provision', 'another attempt began');
    }
    const state = await this.#carryOut(work, 'provision', { playbook: this.#config.playbook, run });
    if (!state.ok) return { is: 'failed', why: state.message };
    const { berth_address: address, berth_name: name } = state.found;
    return {
      is: 'done',
      ...(address === undefined ? {} : { address: plainLine(address, 253) }),
      ...(name === undefined ? {} : { name: plainLine(name, 253) }),
    };
  }

  async release(work: SpareWork, run: SpareRun): Promise<ReleaseOutcome> {
    const { id } = work;
    const { releasePlaybook } = this.#config;
    await this.#playbooks.stop(id, 'provision', 'the spare was released');
    const made = await this.#playbooks.state(id, 'provision');
    if (releasePlaybook === undefined || (made.is === 'absent' && this.#alone)) {
      await this.#playbooks.forget(id);
      return { is: 'done' };
    }
    const state = await this.#carryOut(work, 'release', { playbook: releasePlaybook, run });
    if (!state.ok) return { is: 'failed', why: state.message };
    await this.#playbooks.forget(id);
    return { is: 'done' };
  }

  /** Starts the playbook, or goes on with the run that is found. */
  async #carryOut(work: SpareWork, action: Action, { playbook, run }: Call): Promise<Ended> {
    const { is } = await this.#playbooks.state(work.id, action);
    const found = is === 'running' || (await this.#isOf(work, action));
    const slots = this.#slots[action];
    if (slots.full && !found) run.progress('it waits until other playbooks have ended');
    const leave = await slots.take(run.signal, { atOnce: found });
    try {
      const fault = found ? undefined : await this.#start(work, action, playbook);
      if (fault !== undefined) return { is: 'ended', ok: false, message: fault };
      return await this.#end(work.id, action, run);
    } finally {
      leave();
    }
  }

  /** Whether there is a run of this attempt. */
  async #isOf({ id, attempt }: SpareWork, action: Action): Promise<boolean> {
    const { is } = await this.#playbooks.state(id, action);
    return is !== 'absent' && (await this.#playbooks.attempt(id, action)) === attempt;
  }

  /** Why it was not started; undefined: it was. */
  async #start(work: SpareWork, action: Action, playbook: string): Promise<string | undefined> {
    const { id: spareId, attempt, host } = work;
    const target = { host: host.name, ...(host.address === undefined ? {} : { address: host.address }) };
    try {
      await this.#playbooks.start({ spareId, action, attempt, playbook, target, variables: variablesFor(work) });
      return undefined;
    } catch (error) {
      return `the playbook was not started: ${shownFault(error)}`;
    }
  }

  async #end(id: string, action: Action, run: SpareRun): Promise<Ended> {
    const state = await this.#playbooks.end(id, action, {
      signal: run.signal,
      progress: (note) => run.progress(note),
    });
    if (state.is === 'ended') return state;
    if (state.is === 'running') throw new Error('it was stopped; the playbook goes on');
    return { is: 'ended', ok: false, message: 'the playbook did not start' };
  }
}

function variablesFor({
  id,
  name,
  project,
  pool,
  host,
  cpus,
  memoryMiB,
  diskGiB,
  variables,
}: SpareWork): PlainVariables {
  return {
    berth_spare: id,
    berth_spare_name: name,
    berth_project: project,
    berth_pool: pool ?? '',
    berth_host: host.name,
    berth_address: host.address ?? '',
    berth_cpus: cpus,
    berth_memory_mib: memoryMiB,
    berth_disk_gib: diskGiB,
    // Under a name of their own: Ansible obeys some variables, such as ansible_connection.
    berth_variables: variables,
  };
}
