// The life of guests in a fake world: start, boot, suspension, power button and end. It records each instance that runs
// twice; it prevents none.

import type { Clock } from '../../../base/clock.ts';
import { after, cancelEvents, type FakeGuest, fakeAddress, holdEvents, releaseEvents, slowness } from './fake-guest.ts';
import { GuestRunner } from './guest-runner.ts';
import { parseProgram } from './program.ts';
import { programOn } from './run-disk.ts';
import type { GuestRegistry } from './guest-registry.ts';
import type { VolumeUse } from './volume-use.ts';

export interface FakeLatencies {
  readonly pullMs: number;
  readonly cloneMs: number;
  readonly startMs: number;
  readonly bootMs: number;
  /** From the power button to the end. */
  readonly shutdownMs: number;
  /** To suspend or to resume a guest. */
  readonly suspendMs: number;
}

export interface DoubleStart {
  readonly instanceId: string;
  readonly hosts: readonly string[];
  readonly atMs: number;
}

export class GuestProcesses {
  readonly doubleStarts: DoubleStart[] = [];
  readonly #clock: Clock;
  readonly #latencies: FakeLatencies;
  readonly #guests: GuestRegistry;
  readonly #volumes: VolumeUse;
  readonly #copies = new Map<string, Set<FakeGuest>>(); // running guests by instance, on all hosts

  constructor(parts: {
    readonly clock: Clock;
    readonly latencies: FakeLatencies;
    readonly guests: GuestRegistry;
    readonly volumes: VolumeUse;
  }) {
    this.#clock = parts.clock;
    this.#latencies = parts.latencies;
    this.#guests = parts.guests;
    this.#volumes = parts.volumes;
  }

  /** How many guests of this instance run now, on all hosts together. */
  copies(instanceId: string): number {
    return this.#copies.get(instanceId)?.size ?? 0;
  }

  start(guest: FakeGuest): void {
    this.#countCopy(guest);
    this.#volumes.noteOpened(guest, guest.volumes ?? []);
    this.#volumes.write(guest);
    guest.running = true;
    guest.created = true;
    guest.state = 'running';
    delete guest.reason;
    guest.stopRequested = false;
    guest.ready = false;
    guest.startedAtMs = this.#clock.nowMs();
    this.#boot(guest);
    this.#guests.changed(guest);
  }

  /** Gives a new guest the disk with its program, and the port of its runner. */
  giveProgram(guest: FakeGuest, runDisk: Uint8Array): void {
    const clock = this.#clock;
    const program = programOn(runDisk);
    guest.runner = new GuestRunner({
      after: (delayMs, act) => after(clock, guest, delayMs, act),
      bootId: () => `${guest.instanceId.replace('_', '-')}.${guest.incarnation}.${guest.boots}`,
      steps: program === undefined ? undefined : parseProgram(program),
      powerOff: () => after(clock, guest, this.#latencies.shutdownMs, () => this.end(guest, 'guest-shutdown')),
    });
  }

  end(guest: FakeGuest, cause: 'guest-shutdown' | 'killed'): void {
    if (!guest.running && guest.frozen === undefined) return;
    cancelEvents(guest);
    guest.frozen = undefined;
    guest.handedOver = undefined;
    guest.running = false;
    this.#forgetCopy(guest);
    guest.runner?.end();
    noteEnd(guest, cause);
    this.#guests.changed(guest);
  }

  expect(guest: FakeGuest): void {
    guest.frozen = 'expected';
    this.#guests.changed(guest);
  }

  freeze(guest: FakeGuest, move: NonNullable<FakeGuest['handedOver']>): void {
    if (guest.state !== 'running') return;
    holdEvents(this.#clock, guest);
    this.#volumes.write(guest); // until the last moment
    guest.frozen = 'handed-over';
    guest.handedOver = move;
    guest.running = false;
    this.#forgetCopy(guest);
    this.#guests.changed(guest);
  }

  arrive(target: FakeGuest, source: FakeGuest): void {
    target.frozen = 'arrived';
    target.created = true;
    target.state = 'suspended';
    target.boots = source.boots;
    target.ready = source.ready;
    target.console = source.console;
    if (source.startedAtMs !== undefined) target.startedAtMs = source.startedAtMs;
    if (!source.ready && source.pending.size > 0)
      after(this.#clock, target, this.#latencies.bootMs, () => this.#ready(target, this.#clock.nowMs()));
    this.#guests.changed(target);
  }

  thaw(guest: FakeGuest): void {
    if (guest.frozen !== 'arrived' && guest.frozen !== 'handed-over') return;
    this.#countCopy(guest);
    guest.frozen = undefined;
    guest.handedOver = undefined;
    guest.running = true;
    guest.state = 'running';
    releaseEvents(this.#clock, guest);
    this.#guests.changed(guest);
  }

  /** Does nothing when the guest is in that state already, or does not run. */
  setSuspended(guest: FakeGuest, suspended: boolean): void {
    if (guest.frozen === 'arrived' && !suspended) return this.thaw(guest);
    if (guest.frozen !== undefined) return;
    if (guest.state !== (suspended ? 'running' : 'suspended')) return;
    guest.state = suspended ? 'suspended' : 'running';
    if (suspended) holdEvents(this.#clock, guest);
    else releaseEvents(this.#clock, guest);
    this.#guests.changed(guest);
  }

  pressPowerButton(guest: FakeGuest): void {
    if (guest.state !== 'running' || guest.faults.some((fault) => fault.do === 'ignore-power-button')) return;
    after(this.#clock, guest, this.#latencies.shutdownMs, () => this.end(guest, 'guest-shutdown'));
  }

  #forgetCopy(guest: FakeGuest): void {
    const running = this.#copies.get(guest.instanceId);
    running?.delete(guest);
    if (running?.size === 0) this.#copies.delete(guest.instanceId);
  }

  #countCopy(guest: FakeGuest): void {
    const copies = this.#copies.get(guest.instanceId) ?? new Set<FakeGuest>();
    copies.add(guest);
    this.#copies.set(guest.instanceId, copies);
    if (copies.size === 1 && !guest.running) return;
    this.doubleStarts.push({
      instanceId: guest.instanceId,
      hosts: [...copies].map((each) => each.host),
      atMs: this.#clock.nowMs(),
    });
  }

  #boot(guest: FakeGuest): void {
    const clock = this.#clock;
    const startedAtMs = clock.nowMs();
    guest.console += `boot ${guest.boots} of ${guest.instanceId}\n`;
    guest.boots += 1;
    if (guest.runner?.failsToBoot !== true && !guest.faults.some((fault) => fault.do === 'never-ready'))
      after(clock, guest, this.#latencies.bootMs * slowness(guest), () => this.#ready(guest, startedAtMs));
    for (const fault of guest.faults) {
      if (fault.do === 'crash') after(clock, guest, fault.afterMs, () => this.end(guest, 'killed'));
      if (fault.do === 'power-off') after(clock, guest, fault.afterMs, () => this.end(guest, 'guest-shutdown'));
    }
  }

  #ready(guest: FakeGuest, startedAtMs: number): void {
    guest.ready = true;
    guest.console += `berth: address eth0 ${fakeAddress}\nberth: ready\n`;
    guest.phases = [...guest.phases, { name: 'boot', startedAtMs, durationMs: this.#clock.nowMs() - startedAtMs }];
    guest.runner?.begin();
    this.#guests.changed(guest);
  }
}

function noteEnd(guest: FakeGuest, cause: 'guest-shutdown' | 'killed'): void {
  if (guest.stopRequested) guest.state = 'stopped';
  else if (cause === 'guest-shutdown') {
    guest.state = 'exited';
    guest.reason = { code: 'GuestShutdown', message: 'the guest powered itself off' };
  } else {
    guest.state = 'failed';
    guest.reason = { code: 'HypervisorExited', message: 'the fake guest was killed' };
  }
}
