// One move of a guest, and its files as the two hosts of the move read them.

import type { Duplex } from 'node:stream';
import type { LiveMachine, MoveManifest } from '../../api/agent-protocol.ts';
import type { Piece } from './transfer.ts';

export interface Move {
  readonly instanceId: string;
  readonly id: string;
}

/** The files of a guest on the source. Both functions throw the error of the source, or of the transport. */
export interface MoveSource {
  manifest(move: Move, signal: AbortSignal): Promise<MoveManifest>;
  /** As `packPiece` makes it. */
  read(move: Move, piece: Piece, signal: AbortSignal): Promise<Uint8Array>;
}

export interface MoveProgress {
  readonly bytes: number;
  readonly ofBytes: number;
}

/** The guest itself, in a live move. */
export interface LiveSource extends MoveSource {
  machine(move: Move, signal: AbortSignal): Promise<LiveMachine>;
  /** Whether everything was sent, so that the guest is paused. Throws while it is being sent. */
  sent(move: Move, signal: AbortSignal): Promise<boolean>;
  /** Resolves when everything was sent and the guest is paused permanently, with the milliseconds for which it has been paused. */
  send(move: Move, onProgress: (seen: MoveProgress) => void, signal: AbortSignal): Promise<number>;
}

export interface SendCall {
  dial(name: string): Promise<Duplex>;
  onProgress(seen: MoveProgress): void;
}

/** The source's side. Both functions throw `Conflict` while the guest may run, and when this move is not in progress. */
export interface Outgoing {
  manifest(move: Move): Promise<MoveManifest>;
  read(move: Move, piece: Piece): Promise<Uint8Array>;
  machine(move: Move): Promise<LiveMachine>;
  sent(move: Move): Promise<boolean>;
  send(move: Move, call: SendCall, signal: AbortSignal): Promise<number>;
}
