// The contents of the store: the public resources and the records that only the control plane reads. Maps each kind to
// its type.

import type { CloudEvent } from '../../api/news/cloud-event.ts';
import type { WorkloadTemplate } from '../../api/resources/workload.ts';
import type { HostDrain } from '../../api/plans/host-plan.ts';
import type { HostRoll } from '../../api/plans/host-roll.ts';
import type { HostRestore } from '../../api/plans/host-restore.ts';
import type { WebhookDelivery } from '../../api/news/webhook-delivery.ts';
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

/** A source of capacity: a host, its GPUs and NUMA cells. Every claim rewrites it, so concurrent claims conflict. */
export interface Provider {
  readonly kind: 'provider';
  readonly id: string;
  readonly host: string;
  readonly parent: string | null;
  readonly generation: number;
  readonly inventories: Readonly<Record<string, Inventory>>;
  readonly traits: readonly string[];
  readonly aggregates: readonly string[];
  /** Present: made through the Placement API, for other systems. No guest of ours is ever placed on it. */
  readonly outside?: {
    readonly name: string;
    readonly createdAtMs: number;
    readonly changedAtMs: number;
  };
}

/** Capacity held by one incarnation of an instance until its host has deleted the guest; or by a task until it ends. */
export interface Allocation {
  readonly kind: 'allocation';
  readonly consumer: {
    /**
     * Absent: an instance. A task has nothing on the host, and its agent never sees it. The incarnation of a
     * volume grows when it moves to another host. `outside`: a consumer of the Placement
     * API, with one allocation per host and per outside provider; its `incarnation` only tells them apart.
     */
    readonly kind?: 'task' | 'volume' | 'outside';
    readonly id: string;
    readonly incarnation: number;
    readonly project: string;
    readonly name: string;
  };
  readonly host: string;
  /** By provider id, then resource class. */
  readonly amounts: Readonly<Record<string, Amounts>>;
  readonly driver: string;
  /** Host ports that it holds, as `tcp/8080`. Absent: none. */
  readonly ports?: readonly string[];
}

/** A consumer of the Placement API. It exists while it has allocations: a record without any counts as absent. */
export interface OutsideConsumer {
  readonly kind: 'outsideConsumer';
  /** A UUID that the client chose. */
  readonly id: string;
  /** The client's own names: no projects or users of ours. */
  readonly project: string;
  readonly user: string;
  /** Absent: unknown, as clients before version 1.38 give none. */
  readonly type?: string;
  readonly generation: number;
  readonly changedAtMs: number;
}

/**
 * A resource class or a trait that was made through the Placement API; or the name of an outside provider, hashed, so
 * that no two get the same.
 */
export interface PlacementName {
  readonly kind: 'placementName';
  readonly of: 'class' | 'trait' | 'provider';
  readonly name: string;
  readonly createdAtMs: number;
}

/**
 * The last heartbeat of a host's agent. Separate from the host, so that heartbeats wake no controller; deleted while
 * the host is silent.
 */
export interface HostLease {
  readonly kind: 'lease';
  readonly host: string;
  readonly epoch: number;
  readonly renewedAtMs: number;
}

/** The result of a create request with this idempotency key. */
export interface IdempotencyRecord {
  readonly kind: 'idempotency';
  readonly resourceKey: string;
  readonly resourceId: string;
  /** Of the request's content; different content under the same key is refused. */
  readonly fingerprint: string;
  readonly createdAtMs: number;
}

/** A host that was removed from the fleet. Its agent is refused until an operator creates the host again. */
export interface RemovedHost {
  readonly kind: 'removedHost';
  readonly host: string;
  /** Its sessions have ended; a new host of the same name counts on from here. */
  readonly lastEpoch: number;
  readonly removedAtMs: number;
}

/** A machine on which a control plane runs or ran, and whether hosts on that machine take no instances. */
export interface ControlPlane {
  readonly kind: 'controlPlane';
  readonly machineId: string;
  readonly excludeHosts: boolean;
}

/** A control plane of the store, which may no longer run. */
export interface Member {
  readonly kind: 'member';
  /** The same after a restart. */
  readonly name: string;
  /** The address that it advertises. Absent: none, so other machines do not reach it. */
  readonly url?: string;
  /** Of its program. Absent: it is older than this field. */
  readonly version?: string;
  /** The newest form of records that it knows. */
  readonly recordsVersion?: number;
  readonly announcedAtMs: number;
}

/** Proves who has a token. Separate from `token`, so that no answer can contain it. */
export interface Credential {
  readonly kind: 'credential';
  /** The public part of the token's text. */
  readonly tokenId: string;
  /** SHA-256 of the token's text, hexadecimal. */
  readonly digest: string;
  /** Name and id of the `token`: the credential of a deleted token opens nothing. */
  readonly token: string;
  readonly uid: string;
}

/** An ID token that was exchanged for a token: it opens nothing again. Kept until it has expired. */
export interface SpentIdToken {
  readonly kind: 'spentIdToken';
  /** SHA-256, hexadecimal, of what identifies it. */
  readonly digest: string;
  readonly untilMs: number;
}

/** Rewritten by Plans that count towards one limit: two Plans decided on the same count conflict here. */
export interface Gate {
  readonly kind: 'gate';
  readonly name: string;
  readonly generation: number;
}

/**
 * The identity of this store. Every commit has this record as a condition: a restore rewrites it, and no earlier
 * decision can be committed after that. The secrets are here so that all control planes on one store use the same
 * tokens.
 */
export interface Cluster {
  readonly kind: 'cluster';
  /** The store contains records up to this version (upgrade.ts): an older program must not use it. */
  readonly recordsVersion: number;
  /** Random, set when the store is created and at each restore: revisions of different epochs cannot be compared. */
  readonly epoch: string;
  readonly createdAtMs: number;
  /** At least 32 bytes, base64url: the tokens of hosts are derived from it. */
  readonly tokenSecret: string;
  /** SHA-256 of the admin token, hexadecimal: only who has its text can show it. */
  readonly operatorDigest?: string;
  /** When the admin token was replaced last. */
  readonly operatorRotatedAtMs?: number;
  /** The admin token as earlier versions stored it. */
  readonly operatorToken?: string;
  /** While present, no control plane may write: a restore is in progress, or the store has been moved. */
  readonly closed?: {
    readonly by: 'restore' | 'move' | 'moved';
    readonly why: string;
    readonly sinceMs: number;
  };
  /** The last restore: its time, and the revision of the backup. */
  readonly restored?: {
    readonly atMs: number;
    readonly backupRevision: number;
    /**
     * When the newest instance of the backup was created, by the clock of the control plane that created it; 0: none.
     */
    readonly newestInstanceMs: number;
  };
}

/**
 * The control plane that runs the controllers. Written only when the leader changes: the leader's Plans depend on it.
 */
export interface Leader {
  readonly kind: 'leader';
  /** Empty: the last leader has resigned. */
  readonly holder: string;
  /** Grows by one with each leader. */
  readonly term: number;
}

/** The leader's heartbeat. Separate from `leader`, so that the leader's Plans need not depend on it. */
export interface LeaderLease {
  readonly kind: 'leaderLease';
  readonly term: number;
  readonly renewedAtMs: number;
}

/** The newest line of the audit log of one server: what comes after may be missing there, what comes before may not. */
export interface AuditHeadRecord {
  readonly kind: 'auditHead';
  readonly server: string;
  readonly seq: number;
  readonly hash: string;
  readonly atMs: number;
}

/** A private key, PKCS #8 in base64. */
export interface StoredKey {
  readonly pkcs8: string;
}

/** A certificate, PEM, and the private key that it is for. */
export interface Issuer {
  readonly certificate: string;
  readonly key: StoredKey;
}

/** A root and its two issuers. */
export interface AuthorityGeneration {
  readonly id: string;
  readonly createdAtMs: number;
  readonly root: Issuer;
  /** Issues the certificates of servers only. */
  readonly servers: Issuer;
  /** Issues the certificates of hosts only. */
  readonly hosts: Issuer;
}

/** The fleet's own certificate authority, shared by its servers. */
export interface Authority {
  readonly kind: 'authority';
  /** All are trusted. More than one only during a rotation; servers show certificates of the first. */
  readonly generations: readonly AuthorityGeneration[];
  /** The id of the generation that issues the certificates of hosts. */
  readonly issuing: string;
  readonly rotation?: {
    readonly startedAtMs: number;
    /** When the first generation may be dropped. */
    readonly finishAfterMs: number;
  };
}

/** The certificates that a host may show. Deleted with the host. */
export interface HostCertificate {
  readonly kind: 'hostCertificate';
  readonly host: string;
  readonly hostId: string;
  /** Of the host's name, when they were issued: see `HostGeneration`. */
  readonly generation: number;
  /** SHA-256 of the public key of its agent, hex. */
  readonly keyHash: string;
  /** The newest last. */
  readonly issued: readonly {
    /** Lower-case hex. */
    readonly serial: string;
    readonly authority: string;
    /** The generations that were given to the host with it, to trust; absent in records of earlier versions. */
    readonly trusts?: readonly string[];
    /** The host has shown it, and so has got those. */
    readonly used?: true;
    readonly issuedAtMs: number;
    readonly notAfterMs: number;
    /** PEM, of the newest only: a lost answer is given again. */
    readonly chain?: string;
  }[];
}

/** How often a host of this name has been removed. Never deleted, so that credentials of a removed host never become valid again. */
export interface HostGeneration {
  readonly kind: 'hostGeneration';
  readonly host: string;
  readonly generation: number;
}

/** A token with which machines become hosts. Its secret is not stored. */
export interface JoinToken {
  readonly kind: 'joinToken';
  readonly id: string;
  /** SHA-256 of the secret, hex. */
  readonly hash: string;
  /** Pool of the hosts that join with it; absent: none. */
  readonly pool?: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
  readonly expiresAtMs: number;
  readonly usesMax: number;
  /** Names of the hosts that have joined with it. */
  readonly used: readonly string[];
}

/** A key that values in this store are encrypted under, itself encrypted under a master key that is not in the store. */
export interface DataKey {
  readonly kind: 'dataKey';
  /** 16 hex digits, derived from the key. */
  readonly id: string;
  /** The id of the master key; a rotation rewrites this record and nothing else. */
  readonly masterKey: string;
  /** A sealed text (base/sealed.ts). */
  readonly wrapped: string;
  readonly createdAtMs: number;
}

/** The values of a secret: apart from the resource, which is shown. */
export interface SecretValues {
  readonly kind: 'secretValues';
  readonly project: string;
  readonly name: string;
  readonly secretId: string;
  readonly values: Readonly<Record<string, string>>;
}

/** An event that a webhook has yet to be sent, or was sent for the last time. */
export interface PendingDelivery {
  readonly event: CloudEvent;
  readonly attempts: number;
  /** Of the next attempt; absent: it is parked. */
  readonly nextAtMs?: number;
  readonly lastAtMs?: number;
  readonly status?: number;
  readonly error?: string;
}

/** How far a webhook has come. Written by the leader only. */
export interface WebhookProgress {
  readonly kind: 'webhookProgress';
  readonly project: string;
  readonly name: string;
  readonly webhookId: string;
  /** Every event up to this revision is delivered, or in `pending`; 0: nothing was sent yet, and events begin with this record. */
  readonly revision: number;
  /** Every event after `revision` is later than this. */
  readonly readAtMs?: number;
  /** The number of the last request for another delivery that was taken up. */
  readonly asked: number;
  readonly pending: readonly PendingDelivery[];
  /** The last that were delivered, the newest last. */
  readonly delivered: readonly WebhookDelivery[];
  /** Since when every attempt has failed. */
  readonly failingSinceMs?: number;
}

/** How far an event bus has come. Written by the leader only. */
export interface BusProgress {
  readonly kind: 'busProgress';
  /** Of the bus in the configuration. */
  readonly name: string;
  /** The bus has acknowledged every event up to this revision. */
  readonly revision: number;
}

/** A template that a workload had. */
export interface WorkloadRevision {
  readonly kind: 'workloadRevision';
  readonly project: string;
  /** Of the workload. */
  readonly name: string;
  readonly workloadId: string;
  readonly number: number;
  readonly template: WorkloadTemplate;
  readonly createdAtMs: number;
}

/** The plan that was last shown for a host, or the drain that it became. There is one per host. */
export interface HostPlanRecord extends HostDrain {
  readonly kind: 'hostPlan';
}

/** The last restore of a host. There is one per host. */
export interface HostRestoreRecord extends HostRestore {
  readonly kind: 'hostRestore';
}

/** The last roll. There is one in a fleet: what is in maintenance at the same time is counted once. */
export interface HostRollRecord extends HostRoll {
  readonly kind: 'hostRoll';
}

interface InternalByKind {
  workloadRevision: WorkloadRevision;
  hostPlan: HostPlanRecord;
  hostRestore: HostRestoreRecord;
  hostRoll: HostRollRecord;
  busProgress: BusProgress;
  webhookProgress: WebhookProgress;
  secretValues: SecretValues;
  auditHead: AuditHeadRecord;
  authority: Authority;
  hostCertificate: HostCertificate;
  hostGeneration: HostGeneration;
  joinToken: JoinToken;
  dataKey: DataKey;
  cluster: Cluster;
  leader: Leader;
  leaderLease: LeaderLease;
  provider: Provider;
  allocation: Allocation;
  outsideConsumer: OutsideConsumer;
  placementName: PlacementName;
  lease: HostLease;
  idempotency: IdempotencyRecord;
  removedHost: RemovedHost;
  controlPlane: ControlPlane;
  member: Member;
  gate: Gate;
  credential: Credential;
  spentIdToken: SpentIdToken;
}

export interface RecordByKind extends ResourceByKind, InternalByKind {}
export type RecordKind = keyof RecordByKind;
export type AnyRecord = RecordByKind[RecordKind];

/** Kinds whose records are never rewritten: ordered by revision they are in order of creation. */
export const writtenOnce = ['event', 'idempotency'] as const satisfies readonly RecordKind[];
