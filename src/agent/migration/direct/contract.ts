// What the parts of an agent know of direct connections between the two hosts of a move.

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
  /** False: this host takes guests through the control plane only. */
  readonly listens: boolean;
  /** On the target. `peer`: the fingerprint of the source. Repeating it is harmless. Throws when no port is free. */
  listen(move: Move, peer: string): Promise<MoveAddress>;
  /** On the target: the files of the source, once it has connected. Undefined: it has not, after a few seconds. */
  source(move: Move, signal: AbortSignal): Promise<LiveSource | undefined>;
  /** On the target: where connections of the source lead that are for a disk or the memory. Undefined: they are refused. */
  accept(move: Move, connect: ((name: string) => Promise<Duplex>) | undefined): void;
  /** On the source: connects, again and again, until `end`. */
  offer(offer: Offer): void;
  /** Nothing of this instance moves directly any more, or only by move `except`. */
  end(instanceId: string, except?: string): void;
  close(): Promise<void>;
}

export interface DirectOptions {
  readonly identity: MoveIdentity;
  /** Where other hosts reach this one. Absent: it only connects to others. */
  readonly address: string | undefined;
  /** The first free one is taken for a move. */
  readonly ports: { readonly first: number; readonly last: number };
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
}
