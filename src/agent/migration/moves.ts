// The moves of guests from and to this host, as its other parts see them: what was received for a guest or a volume, what is to be reported of
// it, and its files for the host that it moves to.

import type { IncomingSeen, MoveAddress, MovedLive } from '../../api/resources/migration.ts';
import type { LiveMachine, MoveManifest } from '../../api/agent-protocol.ts';
import { ApiError } from '../../api/errors.ts';
import type { DirectMoves } from './direct/contract.ts';
import type { Driver } from '../drivers/driver.ts';
import type { Ledger, LedgerEntry } from '../ledger/ledger.ts';
import type { VolumeFiles } from '../volumes/files/volume-files.ts';
import { type DiskReader, diskName, type Incoming, type IncomingFiles, type ReceivedFile } from './moved-files.ts';
import type { Move, Outgoing, SendCall } from './move.ts';
import { packPiece } from './piece.ts';
import { type Piece, pieceBytesMax } from './transfer.ts';

export interface MovesOptions {
  readonly drivers: readonly Driver[];
  readonly ledger: Ledger;
  readonly volumeFiles: VolumeFiles | undefined;
  /** Absent: this host takes no guests of other hosts. */
  readonly files: IncomingFiles | undefined;
  readonly direct?: DirectMoves | undefined;
}

export class Moves implements Outgoing {
  readonly #options: MovesOptions;
  /** What is here, by instance. */
  readonly #received = new Map<string, (Incoming & { whole: boolean; readonly names: readonly string[] })[]>();
  readonly #seen = new Map<string, IncomingSeen>();
  readonly #arrived = new Map<string, { readonly id: string; readonly stillSinceMs: number }>();
  readonly #movedLive = new Map<string, MovedLive>();
  readonly #tries = new Map<string, number>();
  readonly #sending = new Map<
    string,
    { readonly id: string; readonly abort: AbortController; readonly done: Promise<void> }
  >();
  readonly #at = new Map<string, { readonly id: string; readonly at: MoveAddress }>();

  constructor(options: MovesOptions) {
    this.#options = options;
  }

  get files(): IncomingFiles | undefined {
    return this.#options.files;
  }

  get direct(): DirectMoves | undefined {
    return this.#options.direct;
  }

  /** Handles a changed assignment of an instance. Undefined: it has none. */
  look(instanceId: string, newest: LedgerEntry | undefined): void {
    const { direct } = this.#options;
    if (newest === undefined || newest.assignment.want === 'absent') {
      this.#arrived.delete(instanceId);
      this.#movedLive.delete(instanceId);
    }
    const sending = this.#sending.get(instanceId);
    if (sending !== undefined && newest?.assignment.migration?.id !== sending.id) sending.abort.abort();
    if (direct === undefined) return;
    const { role, id, direct: peers } = newest?.assignment.migration ?? {};
    if (role === 'incoming') return direct.end(instanceId, id);
    if (id === undefined || peers?.at === undefined) return direct.end(instanceId);
    direct.offer({ move: { instanceId, id }, peer: peers.peer, at: peers.at, outgoing: this });
  }

  async open(): Promise<void> {
    for (const { whole, files, ...incoming } of (await this.files?.list()) ?? [])
      this.#note(incoming, { whole, names: files.map(({ name }) => name) });
  }

  seenOf(instanceId: string): IncomingSeen | undefined {
    return this.#seen.get(instanceId);
  }

  noteSeen(instanceId: string, seen: IncomingSeen): void {
    this.#seen.set(instanceId, seen);
  }

  /** The address at which this host listens for the source of this move. */
  noteAt(instanceId: string, id: string, at: MoveAddress): void {
    this.#at.set(instanceId, { id, at });
  }

  atOf(instanceId: string, id: string | undefined): MoveAddress | undefined {
    const known = this.#at.get(instanceId);
    return known?.id === id ? known?.at : undefined;
  }

  noteReceived(incoming: Incoming, names: readonly string[], whole: boolean): void {
    this.#note(incoming, { whole, names });
  }

  #note({ instanceId, incarnation }: Incoming, what: { readonly whole: boolean; readonly names: readonly string[] }) {
    const others = (this.#received.get(instanceId) ?? []).filter((each) => each.incarnation !== incarnation);
    this.#received.set(instanceId, [...others, { instanceId, incarnation, ...what }]);
  }

  /** The disk that was received for this guest. */
  diskOf({ instanceId, incarnation }: Incoming): ReceivedFile | undefined {
    const found = this.#received.get(instanceId)?.find((each) => each.incarnation === incarnation && each.whole);
    return found?.names.includes(diskName) ? this.files?.fileOf(found, diskName) : undefined;
  }

  volumeOf(volumeId: string): ReceivedFile | undefined {
    for (const received of this.#received.values())
      for (const each of received)
        if (each.whole && each.names.includes(volumeId)) return this.files?.fileOf(each, volumeId);
    return undefined;
  }

  /** Counts a failure of this move on this host. Returns the number of failures. */
  countTry(id: string): number {
    const tries = (this.#tries.get(id) ?? 0) + 1;
    this.#tries.set(id, tries);
    return tries;
  }

  /** Records that a guest has arrived live, paused since `stillSinceMs` (monotonic clock). */
  noteArrived(instanceId: string, arrived: { readonly id: string; readonly stillSinceMs: number }): void {
    this.#arrived.set(instanceId, arrived);
  }

  /** A guest runs; if it has arrived live, for the first time here. */
  noteRuns(instanceId: string, nowMs: number): void {
    const arrived = this.#arrived.get(instanceId);
    this.#arrived.delete(instanceId);
    if (arrived === undefined) return;
    this.#movedLive.set(instanceId, {
      id: arrived.id,
      stoodStillMs: Math.max(0, Math.round(nowMs - arrived.stillSinceMs)),
    });
  }

  /** Whether a guest arrived live, by this agent, and does not run yet. */
  standsStill(instanceId: string): boolean {
    return this.#arrived.has(instanceId);
  }

  movedLiveOf(instanceId: string): MovedLive | undefined {
    return this.#movedLive.get(instanceId);
  }

  /** Resolves when this guest is not being sent. */
  async untilSent(instanceId: string): Promise<void> {
    await this.#sending.get(instanceId)?.done;
  }

  async machine(move: Move): Promise<LiveMachine> {
    const { driver } = this.#leaving(move);
    return driver.live.describe(move.instanceId);
  }

  async sent({ instanceId, id }: Move): Promise<boolean> {
    const migration = this.#options.ledger.newestOf(instanceId)?.assignment.migration;
    if (migration?.id !== id || migration.role !== 'outgoing')
      throw new ApiError('Conflict', `instance ${instanceId} does not leave this host by move ${id}`);
    if (this.#sending.has(instanceId)) throw new ApiError('Conflict', `${instanceId} is being sent`);
    return (await this.#guestOf(instanceId)?.driver.live?.sent(instanceId, id)) ?? false;
  }

  async send(move: Move, call: SendCall, signal: AbortSignal): Promise<number> {
    const { driver, assignment } = this.#leaving(move);
    const { instanceId, id } = move;
    if (this.#sending.has(instanceId)) throw new ApiError('Conflict', `${instanceId} is being sent already`);
    const abort = new AbortController();
    const { bytesPerSecondMax } = assignment.migration ?? {};
    const sending = driver.live.send(
      instanceId,
      {
        ...call,
        bytesPerSecondMax,
        move: { id, revision: assignment.revision },
        assertUnderWay: () => void this.#leaving(move),
      },
      AbortSignal.any([signal, abort.signal]),
    );
    const done = sending.then(
      () => {},
      () => {}, // the caller gets the error
    );
    this.#sending.set(instanceId, { id, abort, done });
    try {
      return await sending;
    } finally {
      this.#sending.delete(instanceId);
    }
  }

  /** The running guest that leaves by this move. */
  #leaving({ instanceId, id }: Move) {
    const assignment = this.#options.ledger.newestOf(instanceId)?.assignment;
    const migration = assignment?.migration;
    const here = this.#guestOf(instanceId);
    const live = here?.driver.live;
    const isLeaving = migration?.id === id && migration.role === 'outgoing' && migration.live === true;
    if (assignment === undefined || !isLeaving || assignment.want !== 'running')
      throw new ApiError('Conflict', `instance ${instanceId} does not leave this host by move ${id} while it runs`);
    if (live === undefined || here?.guest.state !== 'running' || here.guest.incarnation !== assignment.incarnation)
      throw new ApiError('Conflict', `its guest is ${here?.guest.state ?? 'gone'} here, and does not run`);
    return { driver: { ...here.driver, live }, assignment };
  }

  /** What this host still has of moves of the instance that `isOver` says are over. */
  leftovers(instanceId: string, isOver: (incarnation: number) => boolean): readonly Incoming[] {
    return (this.#received.get(instanceId) ?? []).filter(({ incarnation }) => isOver(incarnation));
  }

  /** The files received so far for this guest. */
  namesOf({ instanceId, incarnation }: Incoming): readonly string[] {
    return this.#received.get(instanceId)?.find((each) => each.incarnation === incarnation)?.names ?? [];
  }

  async discard(incoming: Incoming): Promise<void> {
    await this.files?.discard(incoming);
    const left = (this.#received.get(incoming.instanceId) ?? []).filter(
      ({ incarnation }) => incarnation !== incoming.incarnation,
    );
    if (left.length > 0) this.#received.set(incoming.instanceId, left);
    else this.#received.delete(incoming.instanceId);
  }

  /** For the target. Throws `Conflict` while the guest may run, or when this move is not under way here. */
  async manifest(move: Move): Promise<MoveManifest> {
    const entry = this.#outgoing(move);
    const names = [diskName, ...(entry.assignment.migration?.volumes ?? [])];
    const files: { name: string; sizeBytes: number }[] = [];
    for (const name of names) {
      const reader = await this.#open(entry, name);
      if (reader === undefined) continue; // it was never started
      files.push({ name, sizeBytes: reader.sizeBytes });
      await reader.close();
    }
    return { id: move.id, files };
  }

  async read(move: Move, { name, offset, length }: Piece): Promise<Uint8Array> {
    if (length < 1 || length > pieceBytesMax)
      throw new ApiError('InvalidRequest', `length must be 1 to ${pieceBytesMax}`, { field: 'length' });
    const reader = await this.#open(this.#outgoing(move), name);
    if (reader === undefined) throw new ApiError('NotFound', `there is no file "${name}"`);
    try {
      const bytes = await reader.read(offset, length);
      this.#outgoing(move); // still
      return packPiece(bytes);
    } finally {
      await reader.close();
    }
  }

  #outgoing({ instanceId, id }: Move): LedgerEntry {
    const { ledger } = this.#options;
    const entry = ledger.newestOf(instanceId);
    const migration = entry?.assignment.migration;
    if (entry === undefined || migration?.id !== id || migration.role !== 'outgoing')
      throw new ApiError('Conflict', `instance ${instanceId} does not leave this host by move ${id}`);
    const guest = this.#guestOf(instanceId)?.guest;
    const over =
      guest === undefined || guest.state === 'stopped' || guest.state === 'exited' || guest.state === 'failed';
    if (entry.assignment.want !== 'stopped' || !over || guest?.damaged === true)
      throw new ApiError(
        'Conflict',
        `its guest is ${guest?.state ?? 'wanted'} here, and is copied once it is stopped`,
        {
          details: { reason: 'NotStopped' },
        },
      );
    return entry;
  }

  #guestOf(instanceId: string) {
    for (const driver of this.#options.drivers) {
      const guest = driver.guests().find((each) => each.instanceId === instanceId);
      if (guest !== undefined) return { driver, guest };
    }
    return undefined;
  }

  /** Undefined: there is no such file. */
  async #open({ assignment }: LedgerEntry, name: string): Promise<DiskReader | undefined> {
    const { instanceId } = assignment;
    if (name !== diskName) {
      if (assignment.migration?.volumes.includes(name) !== true) return undefined;
      return this.#options.volumeFiles?.openRead(name);
    }
    const here = this.#guestOf(instanceId);
    if (here === undefined) return this.diskOf(assignment)?.open();
    if (here.driver.migration === undefined)
      throw new ApiError('Conflict', `guests of the driver "${here.driver.name}" cannot move`);
    return here.driver.migration.openDisk(instanceId);
  }
}
