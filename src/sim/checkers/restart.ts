// Invariant 9: a restart of an agent or a server changes nothing but time. A guest is stopped or removed while it runs only when it was
// not wanted to run some time before, and one incarnation is started again only after that. The checker must see commits before their
// effect on a guest; it may see the guest later.

import type { Instance } from '../../api/resources/instance.ts';
import type { FakeGuest } from '../../agent/drivers/fake/world.ts';
import type { AnyRecord } from '../../core/state/records.ts';
import type { Commit } from '../history.ts';
import type { Checker, Facts } from './checker.ts';
import { mayEndByCheck } from './undisturbed.ts';

export const restartChecker = (facts: Facts): Checker => new RestartChecker(facts);

/** The longest time from a commit to its effect on a guest: pauses, partitions and slow starts lie between. */
const orderMsMax = 120_000;

interface Life {
  readonly incarnation: number;
  running: boolean;
  /** Each time it was started. */
  readonly startedAtMs: number[];
  endedMs: number | undefined;
}

/** What commits say of one incarnation on one host, whether its guest is known or not. */
interface Wish {
  /** When it was last not wanted to run. */
  unwantedMs: number;
  /** Since when it is wanted again; undefined: it is not. */
  wantedSinceMs?: number;
}

/** One incarnation of an instance on one host. */
interface Placed {
  readonly host: string;
  readonly instanceId: string;
  readonly incarnation: number;
}

class RestartChecker implements Checker {
  readonly invariant = 9;
  readonly #facts: Facts;
  /** The life of each guest there is or was, by host and instance. */
  readonly #lives = new Map<string, Life>();
  readonly #hostsOf = new Map<string, Set<string>>();
  readonly #instanceKeys = new Map<string, string>();
  /** By host, instance and incarnation. Those that were always wanted have none. */
  readonly #wishes = new Map<string, Wish>();

  constructor(facts: Facts) {
    this.#facts = facts;
  }

  onCommit({ events }: Commit): string | undefined {
    for (const { key, after } of events) if (after?.kind === 'instance') this.#instanceKeys.set(after.metadata.id, key);
    for (const { before, after } of events) for (const record of [before, after]) this.#noteRecord(record);
    return undefined;
  }

  onGuest(host: string, instanceId: string): string | undefined {
    const { world, excused, nowMs } = this.#facts;
    if (excused.host(host)) return undefined;
    const name = `${host} ${instanceId}`;
    const guest = world.guest(host, instanceId);
    const known = this.#lives.get(name);
    if (guest !== undefined) return this.#faultOfPresent(guest, this.#lifeOf(guest));
    if (known === undefined) return undefined;
    if (known.endedMs === nowMs() && !this.#wasUnwanted(host, instanceId, known))
      return `${instanceId} incarnation ${known.incarnation} on ${host} was removed while it was wanted to run`;
    known.running = false;
    return undefined;
  }

  #faultOfPresent(
    { host, instanceId, incarnation, running, stopRequested }: FakeGuest,
    life: Life,
  ): string | undefined {
    const name = `${instanceId} incarnation ${incarnation} on ${host}`;
    const nowMs = this.#facts.nowMs();
    if (running && !life.running) {
      const selfStopped = this.#instanceOf(instanceId)?.spec.selfStop === true; // with the next lease it goes on
      if (life.startedAtMs.length > 0 && !selfStopped && !this.#wasUnwanted(host, instanceId, life))
        return `${name} was started again, and nobody wanted that`;
      life.startedAtMs.push(nowMs);
    }
    if (!running && life.running) {
      life.endedMs = nowMs;
      const instance = this.#instanceOf(instanceId);
      const byCheck = instance !== undefined && mayEndByCheck(instance);
      if (stopRequested && !byCheck && !this.#wasUnwanted(host, instanceId, life))
        return `${name} was stopped while it was wanted to run`;
    }
    life.running = running;
    return undefined;
  }

  /** The life of this incarnation, which begins when it is first seen. */
  #lifeOf({ host, instanceId, incarnation }: FakeGuest): Life {
    const name = `${host} ${instanceId}`;
    const known = this.#lives.get(name);
    if (known?.incarnation === incarnation) return known;
    const life: Life = { incarnation, running: false, startedAtMs: [], endedMs: undefined };
    this.#lives.set(name, life);
    this.#hostsOf.set(instanceId, (this.#hostsOf.get(instanceId) ?? new Set()).add(host));
    this.#noteBirth({ host, instanceId, incarnation });
    return life;
  }

  #noteRecord(record: AnyRecord | null): void {
    const placed = placedOf(record);
    if (placed === undefined) return;
    this.#noteWish(placed);
    const { instanceId } = placed;
    for (const host of this.#hostsOf.get(instanceId) ?? []) {
      const known = this.#lives.get(`${host} ${instanceId}`);
      if (known) this.#noteWish({ host, instanceId, incarnation: known.incarnation });
    }
  }

  #noteWish(placed: Placed): void {
    const nowMs = this.#facts.nowMs();
    const name = wishName(placed);
    const wish = this.#wishes.get(name);
    if (!this.#isWanted(placed)) this.#wishes.set(name, { unwantedMs: nowMs });
    else if (wish) wish.wantedSinceMs ??= nowMs;
  }

  /** A wish that was over before the guest was there does not concern the guest. */
  #noteBirth(placed: Placed): void {
    const name = wishName(placed);
    const wantedSinceMs = this.#wishes.get(name)?.wantedSinceMs;
    if (wantedSinceMs !== undefined && wantedSinceMs <= this.#facts.nowMs()) this.#wishes.delete(name);
    else this.#noteWish(placed);
  }

  /** Whether a guest is wanted to run, worked out here again: what the control plane works out is under test. */
  #isWanted({ host, instanceId, incarnation }: Placed): boolean {
    const allocation = this.#facts.state.get('allocation', `allocations/${instanceId}.${incarnation}`);
    const holdsCpu = Object.values(allocation?.amounts ?? {}).some((held) => (held['VCPU'] ?? 0) > 0);
    const instance = this.#instanceOf(instanceId);
    if (!holdsCpu || instance === undefined || instance.metadata.deletionRequestedAtMs !== undefined) return false;
    const { status, spec } = instance;
    if (status.host !== host || status.incarnation !== incarnation || spec.powerState === 'stopped') return false;
    if (status.migration?.step === 'Copying' || status.resize?.pending) return false;
    const reason = status.conditions.find(({ type }) => type === 'Running')?.reason;
    return status.phase !== 'Exited' && (status.phase !== 'Failed' || reason === 'HostLost');
  }

  /** Since its last start, or on the way to it. */
  #wasUnwanted(host: string, instanceId: string, { incarnation, startedAtMs }: Life): boolean {
    const placed = { host, instanceId, incarnation };
    const wish = this.#wishes.get(wishName(placed));
    const lately = wish !== undefined && wish.unwantedMs >= (startedAtMs.at(-1) ?? 0) - orderMsMax;
    return lately || !this.#isWanted(placed);
  }

  #instanceOf(instanceId: string): Instance | undefined {
    const found = this.#facts.state.get('instance', this.#instanceKeys.get(instanceId) ?? '');
    return found?.metadata.id === instanceId ? found : undefined;
  }
}

function wishName({ host, instanceId, incarnation }: Placed): string {
  return `${host} ${instanceId} ${incarnation}`;
}

/** The incarnation that a record is about; undefined: none. An instance that is on no host may still have guests. */
function placedOf(record: AnyRecord | null): Placed | undefined {
  if (record?.kind === 'instance') {
    const { host = '', incarnation } = record.status;
    return { host, instanceId: record.metadata.id, incarnation };
  }
  if (record?.kind !== 'allocation' || record.consumer.kind !== undefined) return undefined;
  return { host: record.host, instanceId: record.consumer.id, incarnation: record.consumer.incarnation };
}
