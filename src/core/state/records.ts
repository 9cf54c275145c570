// What the store holds: the public resources and the records only the control plane reads. One place maps a kind to its type.

import type { ResourceByKind } from '../../api/resources/index.ts';
import type { Amounts } from '../../api/resources/metadata.ts';

/** One resource class of one provider, as in OpenStack Placement. */
export interface Inventory {
  readonly total: number;
  readonly reserved: number;
  readonly minUnit: number;
  readonly maxUnit: number;
  readonly stepSize: number;
  readonly allocationRatio: number;
}

/** Something that has room: a host, its GPUs and NUMA cells. Every claim rewrites it, so two claims at once collide. */
export interface Provider {
  readonly kind: 'provider';
  readonly id: string;
  readonly host: string;
  readonly parent: string | null;
  readonly generation: number;
  readonly inventories: Readonly<Record<string, Inventory>>;
  readonly traits: readonly string[];
  readonly aggregates: readonly string[];
}

/** Room held by one incarnation of one instance, until its host says that nothing is left of it; or by a task, until that ends. */
export interface Allocation {
  readonly kind: 'allocation';
  readonly consumer: {
    /** Missing: an instance. Of a task nothing is on the host, and its agent never hears of it. A volume has one life: incarnation 1. */
    readonly kind?: 'task' | 'volume';
    readonly id: string;
    readonly incarnation: number;
    readonly project: string;
    readonly name: string;
  };
  readonly host: string;
  /** By provider id, then resource class. */
  readonly amounts: Readonly<Record<string, Amounts>>;
  readonly driver: string;
  /** Ports of the host that are its own, as `tcp/8080`. Missing: none. */
  readonly ports?: readonly string[];
}

/** That a host's agent was heard. Rewritten by heartbeats, apart from the host so that those wake nobody; gone while it is silent. */
export interface HostLease {
  readonly kind: 'lease';
  readonly host: string;
  readonly epoch: number;
  readonly renewedAtMs: number;
}

/** That a create with this key was done, and what came of it. */
export interface IdempotencyRecord {
  readonly kind: 'idempotency';
  readonly resourceKey: string;
  readonly resourceId: string;
  /** Of the request's content; another content under the same key is refused. */
  readonly fingerprint: string;
  readonly createdAtMs: number;
}

/** That a host was taken out of the fleet. Its agent may not come back before an operator makes the host again. */
export interface RemovedHost {
  readonly kind: 'removedHost';
  readonly host: string;
  /** Its sessions are over for good: a host of the same name goes on counting from here. */
  readonly lastEpoch: number;
  readonly removedAtMs: number;
}

/** That a control plane runs, or ran, on this machine, and whether the hosts there shall take no instances. */
export interface ControlPlane {
  readonly kind: 'controlPlane';
  readonly machineId: string;
  readonly excludeHosts: boolean;
}

/** Where a control plane can be reached, as its operator advertises it. It may be gone. */
export interface Member {
  readonly kind: 'member';
  /** The same after a restart. */
  readonly name: string;
  readonly url: string;
  readonly announcedAtMs: number;
}

/** What Plans rewrite that count towards one limit: two that were decided on the same count collide here. */
export interface Gate {
  readonly kind: 'gate';
  readonly name: string;
  readonly generation: number;
}

/**
 * What this store is. Every commit rests on this record: a restore rewrites it, and nothing that was decided before can be written after.
 * The secrets are here so that every control plane on one store knows the same tokens.
 */
export interface Cluster {
  readonly kind: 'cluster';
  /** Records of up to this version (upgrade.ts) are in the store: whoever knows only older ones must not use it. */
  readonly recordsVersion: number;
  /** Drawn when the store is made and anew at each restore: revisions of two epochs cannot be compared. */
  readonly epoch: string;
  readonly createdAtMs: number;
  /** At least 32 bytes, base64url: hosts' tokens are made from it. */
  readonly tokenSecret: string;
  readonly operatorToken: string;
  /** While it is there, no control plane may write: a restore is under way, or the store has been moved. */
  readonly closed?: {
    readonly by: 'restore' | 'move' | 'moved';
    readonly why: string;
    readonly sinceMs: number;
  };
  /** The last restore: when, and of which revision the backup was. */
  readonly restored?: {
    readonly atMs: number;
    readonly backupRevision: number;
    /** When the newest instance of the backup was made, by the clock of whoever made it; 0: it had none. */
    readonly newestInstanceMs: number;
  };
}

/** Which control plane runs the controllers. Written when that changes and never else: the leader's Plans rest on it. */
export interface Leader {
  readonly kind: 'leader';
  /** Empty: the last one has let go. */
  readonly holder: string;
  /** Grows by one with each leader. */
  readonly term: number;
}

/** That the leader was alive. Rewritten by it, apart from `leader` so that its Plans need not rest on that. */
export interface LeaderLease {
  readonly kind: 'leaderLease';
  readonly term: number;
  readonly renewedAtMs: number;
}

interface InternalByKind {
  cluster: Cluster;
  leader: Leader;
  leaderLease: LeaderLease;
  provider: Provider;
  allocation: Allocation;
  lease: HostLease;
  idempotency: IdempotencyRecord;
  removedHost: RemovedHost;
  controlPlane: ControlPlane;
  member: Member;
  gate: Gate;
}

export interface RecordByKind extends ResourceByKind, InternalByKind {}
export type RecordKind = keyof RecordByKind;
export type AnyRecord = RecordByKind[RecordKind];

/** Kinds of which no record is ever written again: by revision they stand in the order in which they were made. */
export const writtenOnce = ['event', 'idempotency'] as const satisfies readonly RecordKind[];
