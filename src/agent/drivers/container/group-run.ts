// One run of the containers of one guest, from their start or their adoption to the end of the last: looks after each event,
// ends all when one has failed, copies what they write. It ends no container that is not in its list.

import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { GuestCounters } from '../../../api/guests/guest-usage.ts';
import type { BootMarks } from '../guest-life/boot-marks.ts';
import type { Run, RunEnd, Trouble } from '../guest-life/hypervisor.ts';
import { connectTcp } from '../guest-life/ways-in/connect-tcp.ts';
import type { Engine } from './engine.ts';
import type { EngineWatch } from './engine-watch.ts';
import { GroupContainers } from './group-containers.ts';
import { GroupHealth } from './group-health.ts';
import { GroupLog } from './group-log.ts';
import { type GroupState, groupState, runs } from './group-state.ts';
import { GroupSuspension } from './group-suspension.ts';
import { Looks } from './looks.ts';

export interface GroupRunOptions {
  readonly engine: Engine;
  readonly watch: EngineWatch;
  readonly clock: Clock;
  readonly log: Logger;
  readonly instanceId: string;
  /** The guest's. */
  readonly directory: string;
  /** Of the containers, the first the one with the network. */
  readonly names: readonly string[];
  /** They were asked to end before this run watched them. */
  readonly stopping: boolean;
  /** They were ready earlier in this run: paused containers do not show it. */
  readonly ready: boolean;
  /** They were paused when they were last looked at. */
  readonly suspended: boolean;
  /** Makes a health check that the engine does not make by itself. */
  readonly checkHealth: (container: string) => Promise<void>;
  /** The run is detached; `written` resolves when its log is complete on disk. */
  readonly onDetached: (written: Promise<void>) => void;
}

const lookAgainMs = 1000; // after a look that failed
const lastGraceMs = 10_000; // for containers that are ended because another one failed
const endTimeoutMs = 60_000; // SIGKILL works at once, except when a disk hangs
const endPollMs = 50;

/** An object of plain functions, because the caller spreads it. */
export function runGroup(options: GroupRunOptions): Run {
  const run = new GroupRun(options);
  return {
    process: undefined,
    connected: run.connected,
    ended: run.ended,
    onTrouble: (listener) => run.onTrouble(listener),
    onMarks: (listener) => run.onMarks(listener),
    suspension: {
      suspend: () => run.suspension.set(true),
      resume: () => run.suspension.set(false),
      onChange: (listener) => run.suspension.onChange(listener),
    },
    dial: (port) => run.dial(port),
    usage: () => run.usage(),
    alive: () => Promise.resolve(true), // the engine said so; a container that ended since did run
    powerDown: () => run.powerDown(),
    end: () => run.end(),
    detach: () => run.detach(),
  };
}

class GroupRun {
  readonly connected: Promise<void>;
  readonly suspension: GroupSuspension;
  readonly #options: GroupRunOptions;
  readonly #ended = Promise.withResolvers<RunEnd>();
  readonly #over = new AbortController();
  readonly #containers: GroupContainers;
  readonly #lines: GroupLog;
  readonly #looks: Looks<GroupState>;
  readonly #health: GroupHealth;
  readonly #markListeners: ((marks: BootMarks) => void)[] = [];
  readonly #troubleListeners: ((trouble: Trouble | undefined) => void)[] = [];
  readonly #unwatch: () => void;
  #stopping: boolean;
  #marks: BootMarks;
  #trouble: Trouble | undefined;
  #failing: Promise<void> | undefined;
  /** Of the container that failed first. The others are ended for it, so how they end says nothing. */
  #blame: RunEnd['verdict'];

  constructor(options: GroupRunOptions) {
    const { clock, log, instanceId, checkHealth } = options;
    this.#options = options;
    this.#stopping = options.stopping;
    this.#marks = { ready: options.ready };
    this.#containers = new GroupContainers(options);
    this.#lines = new GroupLog({ ...options, containers: this.#containers.list });
    const over = this.#over.signal;
    this.#looks = new Looks({
      clock,
      over,
      look: () => this.#look(),
      onFailure: (error) => log.debug('cannot look at containers; looking again', { error: describeError(error) }),
      retryMs: lookAgainMs,
    });
    const looks = this.#looks;
    this.#health = new GroupHealth({ clock, log, instanceId, over, checkHealth, onChecked: () => looks.soon() });
    this.suspension = new GroupSuspension({
      instanceId,
      containers: this.#containers,
      looks,
      suspended: options.suspended,
    });
    this.#unwatch = options.watch.on(instanceId, () => looks.soon());
    this.connected = looks.now().then(
      () => {},
      () => looks.soon(), // containers that cannot be seen now are watched all the same
    );
  }

  usage(): Promise<GuestCounters> {
    return this.#containers.usage();
  }

  get ended(): Promise<RunEnd> {
    return this.#ended.promise;
  }

  onTrouble(listener: (trouble: Trouble | undefined) => void): void {
    this.#troubleListeners.push(listener);
    listener(this.#trouble);
  }

  onMarks(listener: (marks: BootMarks) => void): void {
    this.#markListeners.push(listener);
    if (this.#marks.ready || this.#marks.address !== undefined) listener(this.#marks);
  }

  dial(port: number): ReturnType<typeof connectTcp> {
    const { address: host } = this.#marks;
    if (host === undefined) throw new DriverError('NotPossible', 'the containers have no address that is known');
    return connectTcp({ host, port }, `port ${port} of the containers`);
  }

  async powerDown(): Promise<void> {
    this.#stopping = true;
    await this.#containers.signal('stop');
    void this.#endImpatiently().catch((error: unknown) =>
      this.#options.log.warn('cannot end a container after its own grace', { error: describeError(error) }),
    );
  }

  /** Containers with a grace of their own are killed after it; the guest's grace is the driver's matter. */
  async #endImpatiently(): Promise<void> {
    const { clock } = this.#options;
    const over = this.#over.signal;
    const beganMs = clock.monotonicMs();
    for (const { name, graceMs } of await this.#containers.graces()) {
      await sleep(clock, Math.max(0, beganMs + graceMs - clock.monotonicMs()), over);
      if (over.aborted) return;
      await this.#containers.signal('kill', [name]);
    }
  }

  async end(): Promise<void> {
    this.#stopping = true;
    if (!this.#over.signal.aborted) await this.#endAll();
    await this.ended;
  }

  detach(): void {
    this.#over.abort();
    this.#unwatch();
    this.#ended.resolve({ cause: 'detached', detail: 'the agent no longer follows it' });
    this.#options.onDetached(this.#lines.stop());
  }

  async #look(): Promise<GroupState> {
    const seen = await this.#containers.inspect();
    for (const each of seen) this.#lines.seen(each.name, runs(each));
    const state = groupState(seen, this.#stopping);
    await this.#act(state);
    return state;
  }

  async #act(state: GroupState): Promise<void> {
    if (this.#over.signal.aborted) return;
    switch (state.is) {
      case 'running':
        this.#report(state);
        return this.suspension.keepTogether(state, this.#stopping);
      case 'failing':
        this.#blame ??= state.verdict;
        if (this.#failing === undefined) this.#failing = this.#endOthers(state);
        return;
      case 'ended':
        return this.#finish(this.#blame ?? state.verdict);
    }
  }

  async #finish(verdict: NonNullable<RunEnd['verdict']>): Promise<void> {
    this.#over.abort();
    this.#unwatch();
    await this.#lines.finish();
    if (verdict.state === 'exited') this.#mark({ ...this.#marks, ready: true }); // it was, perhaps too shortly to be seen
    this.#ended.resolve({ cause: 'other', detail: verdict.reason.message, verdict });
  }

  #report({ address, ready, trouble, unchecked }: GroupState & { is: 'running' }): void {
    this.#mark({ ready: this.#marks.ready || ready, ...(address === undefined ? {} : { address }) });
    if (trouble?.message !== this.#trouble?.message) {
      this.#trouble = trouble;
      for (const listener of this.#troubleListeners) listener(trouble);
    }
    if (unchecked.length > 0) this.#health.checkLater(unchecked);
  }

  #mark(seen: BootMarks): void {
    if (seen.ready === this.#marks.ready && seen.address === this.#marks.address) return;
    this.#marks = seen;
    for (const listener of this.#markListeners) listener(seen);
  }

  /** One container has failed: the others are asked to end, and after a grace period killed. */
  async #endOthers({ verdict, left }: GroupState & { is: 'failing' }): Promise<void> {
    const { clock, log } = this.#options;
    log.info('a container failed; the others of its guest are ended', { left, reason: verdict.reason.message });
    await this.#containers
      .signal('stop')
      .catch((error: unknown) => log.warn('cannot end containers', { error: describeError(error) }));
    await sleep(clock, lastGraceMs, this.#over.signal);
    if (this.#over.signal.aborted) return;
    await this.#endAll().catch((error: unknown) => log.error('containers do not end', { error: describeError(error) }));
  }

  async #endAll(): Promise<void> {
    const { clock, instanceId } = this.#options;
    const deadlineMs = clock.monotonicMs() + endTimeoutMs;
    for (;;) {
      try {
        await this.#containers.signal('kill');
        if ((await this.#looks.now()).is === 'ended') return;
      } catch (error) {
        if (clock.monotonicMs() >= deadlineMs)
          throw new DriverError(
            'ContainerEngineFailed',
            `cannot end the containers of ${instanceId}: ${describeError(error)}`,
          );
      }
      if (this.#over.signal.aborted) return void (await this.ended);
      if (clock.monotonicMs() >= deadlineMs)
        throw new DriverError('ContainerEngineFailed', `the containers of ${instanceId} do not end`);
      await sleep(clock, endPollMs, this.#over.signal);
    }
  }
}
