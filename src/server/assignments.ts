// Assignments: sends each agent what its host should run, from durable records only. One listener serves all hosts; the stream of a host
// is woken when an allocation or an instance on that host changed.

import { type Buggify, neverBuggify } from '../base/buggify.ts';
import type { Clock } from '../base/clock.ts';
import { equalJson } from '../base/equal-json.ts';
import type { Assignment, AssignmentEvent, VolumeAssignment } from '../api/agent-protocol.ts';
import { ApiError } from '../api/errors.ts';
import { assignmentOf } from '../core/operations/assignment.ts';
import { notHeardOf } from '../core/operations/host.ts';
import { type VolumeByName, volumeAssignmentOf } from '../core/operations/volumes/volume-assignment.ts';
import type { SecretByName } from '../core/operations/secret-references.ts';
import type { Cache } from '../core/state/cache.ts';
import { whyClosed } from '../core/state/cluster-state.ts';
import { keys, kindOfKey } from '../core/state/keys.ts';
import type { Allocation } from '../core/state/records.ts';
import type { Entry } from '../core/state/snapshot.ts';

type Sent = { readonly assignment: Assignment } | { readonly volume: VolumeAssignment };

interface Stream {
  /** Allocation keys to check again. */
  readonly due: Set<string>;
  readonly sent: Map<string, Sent>;
  epochOver: boolean;
  wake: () => void;
}

export class Assignments {
  readonly #cache: Cache;
  readonly #clock: Clock;
  readonly #buggify: Buggify;
  readonly #streams = new Map<string, Set<Stream>>();
  /** The host of each allocation that was or will be sent: a deletion does not name its host. */
  readonly #hostByAllocation = new Map<string, string>();

  constructor(parts: { cache: Cache; clock: Clock; buggify?: Buggify }) {
    this.#cache = parts.cache;
    this.#clock = parts.clock;
    this.#buggify = parts.buggify ?? neverBuggify;
    this.#cache.onCommitted((key) => this.#changed(key));
  }

  /**
   * Yields all assignments, then each change, until `signal` aborts. Throws `StaleEpoch` when the session has ended or ends, `Unavailable` when
   * this control plane does not know the session yet.
   */
  async *stream(host: string, epoch: number, pingMs: number, signal: AbortSignal): AsyncIterable<AssignmentEvent> {
    const stream: Stream = { due: new Set(), sent: new Map(), epochOver: false, wake: () => {} };
    const streams = this.#streams.get(host) ?? new Set();
    this.#streams.set(host, streams.add(stream));
    try {
      // A cache that has the event of this session has all earlier events. Having the session from an own commit is not enough.
      await this.#heard(this.#assertSession(host, epoch).revision, signal);
      this.#assertSession(host, epoch);
      yield this.#sync(host, stream);
      // The sync has everything up to its revision, and some later changes: a change from before it must not follow.
      yield { type: 'ping', revision: this.#cache.newestRevision };
      while (!signal.aborted) {
        if (stream.epochOver) this.#assertSession(host, epoch);
        stream.epochOver = false;
        if (this.#buggify('assignments-end')) return;
        if (stream.due.size > 0) yield* this.#drain(stream, host);
        else if ((await this.#wait(stream, pingMs, signal)) === 'idle')
          yield { type: 'ping', revision: this.#cache.revision };
      }
    } finally {
      streams.delete(stream);
      if (streams.size === 0) this.#streams.delete(host);
    }
  }

  #assertSession(host: string, epoch: number): { readonly revision: number } {
    // During a restore the store has a mix of two states: no agent may act on it.
    const why = whyClosed(this.#cache);
    if (why !== undefined) throw new ApiError('Unavailable', `no updates are sent to hosts now: ${why}`);
    const entry = this.#cache.committed('host', keys.host(host));
    const present = entry?.value.status.epoch;
    if (present !== undefined && epoch > present) throw new ApiError('Unavailable', notHeardOf(host, epoch));
    if (!entry || present !== epoch)
      throw new ApiError('StaleEpoch', `session ${epoch} of host "${host}" is over`, { field: 'epoch' });
    return entry;
  }

  /** Resolves when every event up to `revision` is in the cache. */
  #heard(revision: number, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (this.#cache.revision < revision && !signal.aborted) return;
        forget();
        signal.removeEventListener('abort', look);
        resolve();
      };
      const forget = this.#cache.onRevision(look);
      signal.addEventListener('abort', look);
      look();
    });
  }

  #sync(host: string, stream: Stream): AssignmentEvent {
    for (const { key } of this.#cache.committedAllocationsOnHost(host)) {
      const order = this.#order(key, host);
      if (!order) continue;
      stream.sent.set(key, order);
      this.#hostByAllocation.set(key, host);
    }
    const sent = [...stream.sent.values()];
    const volumes = sent.flatMap((order) => ('volume' in order ? [order.volume] : []));
    return {
      type: 'sync',
      revision: this.#cache.revision,
      assignments: sent.flatMap((order) => ('assignment' in order ? [order.assignment] : [])),
      ...(volumes.length > 0 ? { volumes } : {}),
    };
  }

  *#drain(stream: Stream, host: string): Iterable<AssignmentEvent> {
    for (const key of stream.due) {
      stream.due.delete(key);
      const before = stream.sent.get(key);
      const order = this.#order(key, host);
      const { revision, newestRevision } = this.#cache;
      if (order) {
        stream.sent.set(key, order);
        if (before && !differ(before, order) && !this.#buggify('assignment-again')) continue;
        if ('volume' in order)
          yield { type: 'put-volume', revision: Math.max(revision, order.volume.revision), volume: order.volume };
        else
          yield {
            type: 'put',
            revision: Math.max(revision, order.assignment.revision),
            assignment: order.assignment,
          };
      } else if (before) {
        stream.sent.delete(key);
        if ('volume' in before) {
          const { volumeId, life } = before.volume;
          yield {
            type: 'drop-volume',
            revision: newestRevision,
            volumeId,
            ...(life === undefined ? {} : { life }),
          };
        } else {
          const { instanceId, incarnation } = before.assignment;
          yield { type: 'drop', revision: newestRevision, instanceId, incarnation };
        }
      }
    }
  }

  /** The part of an allocation that is sent to the host; none for tasks and for consumers of other systems. */
  #order(allocationKey: string, host: string): Sent | undefined {
    const allocation = this.#cache.committed('allocation', allocationKey);
    if (!allocation || allocation.value.host !== host) return undefined;
    const { kind, project, name } = allocation.value.consumer;
    switch (kind) {
      case 'task':
      case 'outside':
        return undefined;
      case 'volume': {
        const volume = this.#cache.committed('volume', keys.volume(project, name));
        return { volume: volumeAssignmentOf(allocation, volume, this.#volumeByName) };
      }
      case undefined: {
        const imageByName = (image: string) => this.#cache.imageByName(image)?.value;
        return {
          assignment: assignmentOf(
            allocation,
            this.#instanceOf(allocation),
            imageByName,
            this.#volumeByName,
            this.#secretByName,
          ),
        };
      }
    }
  }

  readonly #volumeByName: VolumeByName = (project, name) =>
    this.#cache.committed('volume', keys.volume(project, name))?.value;

  readonly #secretByName: SecretByName = (project, name) =>
    this.#cache.committed('secretValues', keys.secretValues(project, name))?.value.values;

  #instanceOf({ value }: Entry<Allocation>) {
    return this.#cache.committed('instance', keys.instance(value.consumer.project, value.consumer.name));
  }

  #changed(key: string): void {
    switch (kindOfKey(key)) {
      case 'allocation': {
        const allocation = this.#cache.committed('allocation', key);
        const host = allocation?.value.host ?? this.#hostByAllocation.get(key);
        if (!allocation) this.#hostByAllocation.delete(key);
        else if (this.#streams.has(allocation.value.host)) this.#hostByAllocation.set(key, allocation.value.host);
        if (host !== undefined) this.#due(host, key);
        return;
      }
      case 'instance': {
        if (this.#streams.size === 0) return;
        const instance = this.#cache.committed('instance', key);
        if (!instance) return; // its allocations went before it
        for (const allocation of this.#cache.allocationsOfConsumer(instance.value.metadata.id))
          this.#due(allocation.value.host, allocation.key);
        return;
      }
      case 'volume': {
        if (this.#streams.size === 0) return;
        const volume = this.#cache.committed('volume', key);
        if (!volume) return; // its allocation went before it
        const { id } = volume.value.metadata;
        for (const allocation of this.#cache.allocationsOfConsumer(id))
          this.#due(allocation.value.host, allocation.key);
        const holder = volume.value.status.attachedTo?.id;
        if (holder === undefined) return;
        for (const allocation of this.#cache.allocationsOfConsumer(holder))
          this.#due(allocation.value.host, allocation.key);
        return;
      }
      case 'cluster':
        for (const streams of this.#streams.values())
          for (const stream of streams) {
            stream.epochOver = true; // perhaps a restore: the stream finds out
            stream.wake();
          }
        return;
      case 'host':
        for (const stream of this.#streams.get(key.slice(key.indexOf('/') + 1)) ?? []) {
          stream.epochOver = true; // the stream finds out why
          stream.wake();
        }
        return;
      default:
    }
  }

  #due(host: string, allocationKey: string): void {
    for (const stream of this.#streams.get(host) ?? []) {
      stream.due.add(allocationKey);
      stream.wake();
    }
  }

  async #wait(stream: Stream, pingMs: number, signal: AbortSignal): Promise<'woken' | 'idle'> {
    let woken = false;
    await new Promise<void>((resolve) => {
      const finish = (): void => {
        timer.cancel();
        signal.removeEventListener('abort', wake);
        resolve();
      };
      const wake = (): void => {
        woken = true;
        finish();
      };
      const timer = this.#clock.setTimer(pingMs, finish);
      signal.addEventListener('abort', wake, { once: true });
      stream.wake = wake;
    });
    stream.wake = () => {};
    return woken ? 'woken' : 'idle';
  }
}

function differ(a: Sent, b: Sent): boolean {
  if ('volume' in a) return !('volume' in b) || volumeDiffers(a.volume, b.volume);
  return !('assignment' in b) || differs(a.assignment, b.assignment);
}

function volumeDiffers(a: VolumeAssignment, b: VolumeAssignment): boolean {
  return !equalJson({ ...a, revision: 0 }, { ...b, revision: 0 });
}

/** Status changes of an instance reach its own host too; only what the agent acts on is sent. */
function differs(a: Assignment, b: Assignment): boolean {
  return (
    a.want !== b.want ||
    a.generation !== b.generation ||
    a.image !== b.image ||
    a.cpus !== b.cpus ||
    a.memoryMiB !== b.memoryMiB ||
    !equalJson(a.volumes, b.volumes) ||
    !equalJson(a.migration, b.migration) ||
    (a.containers ?? []).some(({ image }, i) => image !== b.containers?.[i]?.image)
  );
}
