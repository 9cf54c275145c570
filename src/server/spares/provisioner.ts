// What makes spares and asks whether they are ready. Each provisioner and each probe is a file of its own; the runner calls them on the
// leader, and what they answer is written down before anything else happens.

import type { SpareReady } from '../../api/resources/spare.ts';

/** What a provisioner gets to know about a spare. */
export interface SpareWork {
  /** Never used twice: under it an earlier call is found again. */
  readonly id: string;
  /** From 1 on; each attempt is a new call, after the former one has failed. */
  readonly attempt: number;
  readonly name: string;
  readonly project: string;
  readonly createdAtMs: number;
  readonly host: { readonly name: string; readonly address?: string };
  /** What is held on the host. */
  readonly cpus: number;
  readonly memoryMiB: number;
  readonly diskGiB: number;
  readonly pool?: string;
  /** Of the request. */
  readonly variables: Readonly<Record<string, string>>;
}

export interface SpareRun {
  /** Aborted when this server stops, loses the lead, or the spare is no longer wanted: what runs elsewhere is left as it is. */
  readonly signal: AbortSignal;
  /** An earlier call for this attempt may have been made, by this server or another one. */
  readonly resumed: boolean;
  /** A short text for people who wait. */
  progress(note: string): void;
}

export type ProvisionOutcome =
  | {
      readonly is: 'done';
      /** Where the spare is reached. */
      readonly address?: string;
      /** Its own name, where that is not the host's. */
      readonly name?: string;
    }
  /** `refused`: another attempt would fail too. */
  | { readonly is: 'failed'; readonly why: string; readonly refused?: true }
  /** An earlier call may or may not have been carried out, and there is no way to find out: a person decides. */
  | { readonly is: 'unknown'; readonly why: string };

export type ReleaseOutcome = { readonly is: 'done' } | { readonly is: 'failed'; readonly why: string };

export interface Provisioner {
  /** Begins the work, or goes on with what an earlier call has begun. Resolves at its end. A rejection counts as `failed`. */
  provision(work: SpareWork, run: SpareRun): Promise<ProvisionOutcome>;
  /** Ends what runs and undoes it. Repeating it is harmless, also when nothing was made. */
  release(work: SpareWork, run: SpareRun): Promise<ReleaseOutcome>;
}

export interface ProbedSpare {
  readonly id: string;
  /** What the provisioner has found, else the host's. */
  readonly name: string;
  readonly address?: string;
  /** When it was asked for: a node of Kubernetes that is older is a former one. It may register before its provisioner has ended. */
  readonly createdAtMs: number;
}

export interface ProbeAnswer {
  readonly ready: boolean;
  readonly message: string;
  /** Asking again does not help. */
  readonly failed?: true;
}

/** Asks once. */
export type Probe = (
  ready: SpareReady,
  spare: ProbedSpare,
  options: { readonly timeoutMs: number; readonly signal: AbortSignal },
) => Promise<ProbeAnswer>;
