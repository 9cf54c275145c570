// The interface of direct connections between the two hosts of a move.

import type { Duplex } from 'node:stream';
import type { MoveAddress } from '../../../api/resources/migration.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import type { LiveSource, Move, Outgoing } from '../move.ts';

/** PEM, and the SHA-256 of the certificate as `AB:CD:...`. */
export interface MoveIdentity {
  readonly key: string;
  readonly certificate: string;
  readonly fingerprint: string;
}

export interface Offer {
  readonly move: Move;
  /** The fingerprint of the target. */
  readonly peer: string;
  readonly at: MoveAddress;
  readonly outgoing: Outgoing;
}

export interface DirectMoves {
  readonly fingerprint: string;
  /** False: this host receives guests only through the control plane. */
  readonly listens: boolean;
  /** On the target: listens. `peer`: the fingerprint of the source. Idempotent. Throws when no port is free. */
  listen(move: Move, peer: string): Promise<MoveAddress>;
  /** On the target: the files of the source, after it has connected. Undefined: it has not connected within a few seconds. */
  source(move: Move, signal: AbortSignal): Promise<LiveSource | undefined>;
  /** On the target: handles the source's connections for a disk or the memory. Undefined: they are refused. */
  accept(move: Move, connect: ((name: string) => Promise<Duplex>) | undefined): void;
  /** On the source: connects, and reconnects until `end`. */
  offer(offer: Offer): void;
  /** Ends all direct moves of this instance, except move `except`. */
  end(instanceId: string, except?: string): void;
  close(): Promise<void>;
}

export interface DirectOptions {
  readonly identity: MoveIdentity;
  /** The address at which other hosts reach this one. Absent: it only connects to others. */
  readonly address: string | undefined;
  /** Each move uses the first free port. */
  readonly ports: { readonly first: number; readonly last: number };
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
}
