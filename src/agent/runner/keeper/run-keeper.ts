// Keeps one run of one guest, from its assignment to the moment when all that it produced is at the control plane. Everything that it
// decides is on its disk before it is acted upon, so that the next agent goes on where this one was.
//
//   waiting ── welcome: recorded, then "go" ──► running ── exit, or the guest's end ──► finishing ── all sent ──► ended
//
// Changes of the record are made one after another, in the order in which they came.

import type { RunSpec, RunStatus } from '../../../api/resources/run.ts';
import { describeError } from '../../../base/log.ts';
import { isOver, isUnfinished, isUp } from '../../guests/guest-state.ts';
import type { Driver, Guest } from '../../drivers/driver.ts';
import type { AgentCommand, GuestFrame } from '../protocol.ts';
import { type Deadline, Deadlines } from './deadlines.ts';
import type { KeeperOptions } from './keeper-options.ts';
import { artifactsFlaw, type Loss, lossAt, lossOfGuest, stopFinishingMs, waitsMs } from './run-losses.ts';
import { RunConnection } from './run-connection.ts';
import { RunOutput } from './run-output.ts';
import type { RunRecord } from './run-record.ts';
import { statusOfRun } from './run-status.ts';
import type { RunStore } from './run-store.ts';
import { RunUploads } from './run-uploads.ts';

type Welcome = Extract<GuestFrame, { kind: 'welcome' }>;

export class RunKeeper {
  readonly #options: KeeperOptions;
  readonly #store: RunStore;
  #spec: RunSpec;
  /** The program, for a guest that booted without it. */
  #program: () => readonly AgentCommand[] = () => [];
  readonly #output: RunOutput;
  readonly #connection: RunConnection;
  readonly #uploads: RunUploads;
  readonly #deadlines: Deadlines;
  readonly #closing = new AbortController();
  #work: Promise<void> = Promise.resolve();
  #guest: Guest | undefined;
  #pressing: 'term' | 'kill' | undefined;
  #partial = false;
  #ends: (() => void)[] = [];

  constructor(options: KeeperOptions) {
    const { store, spec, clock, instanceId, limits } = options;
    this.#options = options;
    this.#store = store;
    this.#spec = spec;
    this.#output = new RunOutput(store, limits);
    this.#deadlines = new Deadlines(clock, (deadline) => void this.#do(() => this.#reached(deadline)));
    this.#connection = new RunConnection({
      ...options,
      offsets: () => store.offsets,
      take: (frames) => this.#do(() => this.#take(frames)),
      closed: () => this.#do(() => this.#guestOver()),
    });
    this.#uploads = new RunUploads({
      ...options,
      sent: (all) => this.#do(() => this.#sent(all)),
      changed: () => options.onChange(instanceId),
    });
    this.#uploads.start(this.#closing.signal);
    this.#resume();
  }

  get incarnation(): number {
    return this.#store.record.incarnation;
  }

  get status(): RunStatus {
    return statusOfRun(this.#store.record, this.#spec);
  }

  /** These values of secrets are masked in the log from now on. */
  mask(values: readonly string[]): void {
    this.#output.mask(values);
  }

  /** The guest booted before it had a program; now it has this one, unless it still waits. */
  give(spec: RunSpec, program: () => readonly AgentCommand[]): void {
    const comes = this.#spec.warm === 'waiting' && spec.warm === 'claimed';
    this.#spec = spec;
    if (spec.warm === 'claimed') this.#program = program;
    if (comes) void this.#do(async () => this.#connection.hello());
  }

  /** What its driver shows of the guest now. */
  look(guest: Guest | undefined, driver: Driver): void {
    this.#guest = guest;
    const begins = isUp(guest) && this.#store.record.state === 'waiting' && this.#spec.warm !== 'waiting';
    if (begins && !this.#deadlines.has('begin')) this.#deadlines.set('begin', waitsMs.begin);
    if (isUp(guest)) this.#connection.open(driver);
    else this.#connection.pause();
    this.#watchSilence();
    if (guest !== undefined && isOver(guest) && !this.#connection.talking) void this.#do(() => this.#guestOver());
  }

  /** Ends the program because its guest is to stop. Resolves when the guest has sent everything, or took too long. Never rejects. */
  async end(): Promise<void> {
    await this.#do(() => this.#cancel());
    if (this.#store.record.received || this.#closing.signal.aborted) return;
    await new Promise<void>((resolve) => this.#ends.push(resolve));
  }

  /** The guest is to be gone: `end` waits no longer. */
  abandon(): void {
    this.#release();
  }

  /** Guest and program go on. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#deadlines.cancelAll();
    await Promise.all([this.#connection.close(), this.#uploads.close()]);
    await this.#work;
    this.#release();
    await this.#store.close();
  }

  /** One after another; what fails is repeated by a new connection, or by the next agent. */
  #do(act: () => Promise<void>): Promise<void> {
    this.#work = this.#work.then(act).catch((error: unknown) => {
      const { log, instanceId } = this.#options;
      log.warn('a run cannot go on for now', { instance: instanceId, error: describeError(error) });
      this.#connection.breakOff();
    });
    return this.#work;
  }

  /** After the agent's start. */
  #resume(): void {
    const { state, ending, received } = this.#store.record;
    if (received) return;
    if (state === 'running') this.#limit();
    if (state === 'running' && ending !== undefined) this.#press();
    if (state === 'finishing') this.#deadlines.set('artifacts', waitsMs.artifacts);
  }

  #limit(): void {
    const passedMs = this.#options.clock.nowMs() - (this.#store.record.startedAtMs ?? 0);
    this.#deadlines.set('limit', this.#spec.timeLimitMs - Math.max(0, passedMs));
  }

  async #take(frames: readonly GuestFrame[]): Promise<void> {
    const { clock } = this.#options;
    this.#watchSilence(true);
    for (const frame of frames) {
      if (frame.kind === 'data') {
        if (this.#output.take(frame, clock.nowMs())) continue;
        await this.#commit();
        return this.#connection.hello();
      }
      if (frame.kind === 'pong') continue;
      if (frame.kind !== 'welcome') this.#output.flush(clock.nowMs());
      await this.#commit();
      if (frame.kind === 'welcome') await this.#welcomed(frame);
      if (frame.kind === 'exit') await this.#exited(frame.code);
      if (frame.kind === 'done') await this.#done(frame.status);
    }
    await this.#commit();
    this.#flushLater();
  }

  async #commit(): Promise<void> {
    const acks = await this.#output.commit();
    for (const ack of acks) this.#connection.say({ kind: 'ack', ...ack });
    if (acks.length > 0) this.#uploads.wake();
  }

  #flushLater(): void {
    if (this.#partial || !this.#output.pending) return;
    this.#partial = true;
    this.#options.clock.setTimer(waitsMs.partialLine, () => {
      this.#partial = false;
      if (!this.#closing.signal.aborted) void this.#do(() => this.#flush());
    });
  }

  async #flush(): Promise<void> {
    this.#output.flush(this.#options.clock.nowMs());
    await this.#commit();
  }

  async #welcomed({ bootId, phase }: Welcome): Promise<void> {
    const { record } = this.#store;
    const { clock, log, instanceId } = this.#options;
    if (record.received) return this.#bye();
    if (record.bootId !== undefined && record.bootId !== bootId)
      return this.#lost({ reason: 'GuestRestarted', message: 'the guest was restarted while its program ran' });
    this.#output.restart();
    if (record.state === 'waiting' && this.#spec.warm === 'waiting') return;
    if (record.state === 'waiting') {
      log.info('a guest begins its program', { instance: instanceId });
      await this.#change({ state: 'running', bootId, startedAtMs: clock.nowMs() });
      this.#deadlines.cancel('begin');
      this.#limit();
      this.#watchSilence();
    }
    if (phase === 'new')
      for (const command of [...this.#program(), { kind: 'go' } as const]) this.#connection.say(command);
    if (this.#pressing !== undefined) this.#connection.say({ kind: this.#pressing });
  }

  async #exited(exitCode: number): Promise<void> {
    const { state, ending } = this.#store.record;
    if (state !== 'running') return; // said again
    const { clock, log, instanceId } = this.#options;
    log.info('the program of a guest has ended', { instance: instanceId, exitCode });
    this.#relax();
    this.#deadlines.set('artifacts', waitsMs.artifacts);
    await this.#change({ state: 'finishing', outcome: ending ?? 'exited', exitCode, endedAtMs: clock.nowMs() });
  }

  async #done(status: number): Promise<void> {
    // Without an exit before, it is said again.
    if (this.#store.record.state === 'running' || this.#store.record.received) return;
    const tooLarge = this.#output.artifactsTooLarge;
    const flaw = artifactsFlaw(status, tooLarge ? this.#options.limits : undefined);
    await this.#received({ ...flaw, ...(tooLarge ? { artifactsBytes: 0 } : {}) });
  }

  /** Nothing more comes from the guest. */
  async #received(change: Partial<RunRecord>): Promise<void> {
    this.#relax();
    this.#deadlines.cancelAll();
    await this.#change({ ...change, received: true });
    this.#uploads.wake();
    this.#release();
  }

  /** Not before all is at the control plane: a guest that is gone would be taken for one that failed. */
  #bye(): void {
    const { outcome, exitCode, state } = this.#store.record;
    if (state !== 'ended') return;
    const failed = outcome === 'timedOut' || (outcome === 'exited' && exitCode !== 0);
    this.#connection.bye(failed && this.#spec.holdOnFailure ? 'stay' : 'off');
  }

  async #cancel(): Promise<void> {
    const { state, received } = this.#store.record;
    if (received) return;
    if (state === 'running') return this.#askToEnd('cancelled');
    if (state === 'finishing') return this.#deadlines.set('gone', stopFinishingMs);
    const endedAtMs = this.#options.clock.nowMs();
    await this.#received({ state: 'finishing', outcome: 'cancelled', endedAtMs }); // in one step: it must not begin
  }

  async #askToEnd(ending: 'cancelled' | 'timedOut'): Promise<void> {
    if (this.#store.record.ending === undefined) await this.#change({ ending });
    if (this.#pressing === undefined) this.#press();
  }

  #press(): void {
    this.#pressing = 'term';
    this.#connection.say({ kind: 'term' });
    this.#deadlines.set('kill', this.#spec.graceMs);
  }

  #relax(): void {
    this.#pressing = undefined;
    for (const each of ['limit', 'kill', 'gone', 'begin'] as const) this.#deadlines.cancel(each);
    const stopping = this.#ends.length > 0 || this.#store.record.ending === 'cancelled';
    if (stopping) this.#deadlines.set('gone', stopFinishingMs);
  }

  async #reached(deadline: Deadline): Promise<void> {
    if (this.#closing.signal.aborted || this.#store.record.received) return;
    if (deadline === 'limit') return this.#askToEnd('timedOut');
    if (deadline !== 'kill') return this.#lost(lossAt(deadline));
    this.#pressing = 'kill';
    this.#connection.say({ kind: 'kill' });
    this.#deadlines.set('gone', waitsMs.gone);
  }

  /** The outcome that is known stays. */
  async #lost({ reason, message }: Loss): Promise<void> {
    const { outcome, ending, endedAtMs } = this.#store.record;
    const { clock, log, instanceId } = this.#options;
    log.warn('a run did not come to its end', { instance: instanceId, reason, message });
    await this.#flush();
    await this.#received({
      ...{ state: 'finishing', outcome: outcome ?? ending ?? 'lost', endedAtMs: endedAtMs ?? clock.nowMs() },
      ...{ reason, message, artifactsBytes: 0 },
    });
  }

  /** The guest may have ended with the last connection. */
  async #guestOver(): Promise<void> {
    const guest = this.#guest;
    const { received, state, outcome } = this.#store.record;
    if (guest === undefined || !isOver(guest) || received || this.#closing.signal.aborted) return;
    if (isUnfinished(guest) || (guest.state === 'stopped' && state === 'waiting')) return; // to be started yet
    if (outcome !== undefined && this.#spec.artifacts.length === 0) return this.#received({});
    await this.#lost(lossOfGuest(guest, outcome !== undefined));
  }

  /** A guest whose processors stand still need not say anything. */
  #watchSilence(heard = false): void {
    const { received, state } = this.#store.record;
    const speaks = this.#guest?.state === 'running' && !received && state !== 'waiting';
    if (!speaks) this.#deadlines.cancel('silence');
    else if (heard || !this.#deadlines.has('silence')) this.#deadlines.set('silence', waitsMs.silence);
  }

  async #sent(flaw: Partial<RunRecord>): Promise<void> {
    await this.#change({ ...(this.#store.record.reason === undefined ? flaw : {}), state: 'ended' });
    this.#bye();
  }

  async #change(change: Partial<RunRecord>): Promise<void> {
    await this.#store.save(change);
    this.#options.onChange(this.#options.instanceId);
  }

  #release(): void {
    for (const resolve of this.#ends.splice(0)) resolve();
  }
}
