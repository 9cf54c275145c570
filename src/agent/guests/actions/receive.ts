// Receives the files of a guest that moves to this host: first what its creation will need besides them, while the guest still runs; then the
// files, piece by piece, once it is stopped. Starts nothing. Goes on where an interrupted transfer ended.

import type { Assignment } from '../../../api/agent-protocol.ts';
import type { IncomingSeen, MoveWay } from '../../../api/resources/migration.ts';
import type { Step } from '../../../base/concurrency/keyed-reconciler.ts';
import { sleep } from '../../../base/clock.ts';
import { describeError } from '../../../base/log.ts';
import type { Driver, GuestSpec } from '../../drivers/driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { LedgerEntry } from '../../ledger/ledger.ts';
import { diskName, type IncomingFiles, type IncomingLook } from '../../migration/moved-files.ts';
import type { Move, MoveSource } from '../../migration/move.ts';
import { unpackPiece } from '../../migration/piece.ts';
import { bytesOf, isOf, nextPiece, pauseMs } from '../../migration/transfer.ts';
import type { GuestParts } from '../parts.ts';
import { meansOf, specOf } from './create.ts';

type Migration = NonNullable<Assignment['migration']>;

export async function receive(parts: GuestParts, { assignment }: LedgerEntry): Promise<Step> {
  const { migration, instanceId } = assignment;
  if (migration === undefined) return 'rest';
  const { state, id } = parts.moves.seenOf(instanceId) ?? {};
  if (id === migration.id && (state === 'received' || state === 'failed')) return 'rest';
  const abort = new AbortController();
  parts.notes.operations.set(instanceId, { kind: 'receive', id: migration.id, abort });
  try {
    const { driver, spec } = meansToReceive(parts, assignment);
    await listen(parts, assignment);
    if (id !== migration.id) {
      tell(parts, assignment, { state: 'preparing', bytes: 0 });
      await driver.migration.prepare(spec, abort.signal);
      tell(parts, assignment, { state: 'prepared', bytes: 0 });
    }
    if (!migration.copy) return 'rest'; // the control plane has the guest stopped first
    await fetchAll(parts, assignment, { driver, spec, migration, signal: abort.signal });
  } catch (error) {
    if (abort.signal.aborted || parts.closing()) return 'go-on';
    if (!isFinal(error)) {
      const seen = parts.moves.seenOf(instanceId);
      if (seen) tell(parts, assignment, { ...seen, message: describeError(error).slice(0, 1024) });
      throw error;
    }
    parts.log.warn('cannot receive a guest', { instance: instanceId, error: error.message });
    tell(parts, assignment, { state: 'failed', bytes: 0, message: error.message.slice(0, 1024) });
  } finally {
    parts.notes.operations.delete(instanceId);
  }
  return 'rest';
}

/** Everything else is tried again: a source that is away comes back, and its guest may still be stopping. */
function isFinal(error: unknown): error is DriverError {
  return error instanceof DriverError && error.code !== 'Aborted' && error.code !== 'Internal';
}

interface Means {
  readonly driver: Driver & { readonly migration: NonNullable<Driver['migration']> };
  readonly spec: GuestSpec;
}

export function meansToReceive(parts: GuestParts, assignment: Assignment): Means {
  const { driver, image, failure } = meansOf(parts, assignment);
  if (failure !== undefined) throw new DriverError('NotPossible', failure.message);
  const { migration } = driver;
  if (migration === undefined || parts.moves.files === undefined)
    throw new DriverError('NotPossible', `guests of driver "${driver.name}" cannot move to this host`);
  return { driver: { ...driver, migration }, spec: specOf(assignment, { image, volumes: [], program: undefined }) };
}

/** Lets the source connect. Where this is impossible, the files come through the control plane. */
export async function listen({ moves, log }: GuestParts, { instanceId, migration }: Assignment): Promise<void> {
  if (migration?.direct === undefined || moves.direct?.listens !== true) return;
  try {
    moves.noteAt(
      instanceId,
      migration.id,
      await moves.direct.listen({ instanceId, id: migration.id }, migration.direct.peer),
    );
  } catch (error) {
    log.warn('cannot listen for a guest that moves here; its files come through the control plane', {
      instance: instanceId,
      error: describeError(error),
    });
  }
}

export function tell(
  { moves, notes }: GuestParts,
  { instanceId, migration }: Assignment,
  seen: Omit<IncomingSeen, 'id'>,
): void {
  const at = moves.atOf(instanceId, migration?.id);
  moves.noteSeen(instanceId, { ...seen, id: migration?.id ?? '', ...(at === undefined ? {} : { at }) });
  notes.changed(instanceId);
}

async function fetchAll(
  parts: GuestParts,
  assignment: Assignment,
  { driver, spec, migration, signal }: Means & { readonly migration: Migration; readonly signal: AbortSignal },
): Promise<void> {
  const { moves, log, clock } = parts;
  const { files } = moves;
  if (files === undefined) return;
  const { instanceId } = assignment;
  const move = { instanceId, id: migration.id };
  let look = await files.look(assignment);
  if (look?.id !== migration.id || !look.whole) {
    const from = await sourceOf(parts, move, signal);
    const manifest = await from.source.manifest(move, signal);
    if (look === undefined || !isOf(look, manifest)) {
      look = { ...manifest, whole: false, files: manifest.files.map((file) => ({ ...file, doneBytes: 0 })) };
      await files.begin(assignment, look);
    }
    moves.noteReceived(assignment, namesOf(look), false);
    log.info('receiving a guest', { instance: instanceId, move: migration.id, ...bytesOf(look) });
    for (;;) {
      const { source, way } = await sourceOf(parts, move, signal);
      tell(parts, assignment, { state: 'copying', ...bytesOf(look), way });
      const piece = nextPiece(look);
      if (piece === undefined) break;
      const beganMs = clock.monotonicMs();
      const { bytes } = unpackPiece(await source.read(move, piece, signal), piece.length);
      signal.throwIfAborted();
      await files.append(assignment, { ...piece, ...(bytes === undefined ? {} : { bytes }) });
      const tookMs = clock.monotonicMs() - beganMs;
      await sleep(clock, pauseMs({ bytes: bytes?.length ?? 0, tookMs }, migration.bytesPerSecondMax), signal);
      signal.throwIfAborted();
      look = (await files.look(assignment)) ?? look;
    }
    await files.finish(assignment);
    look = { ...look, whole: true };
  }
  await acceptAll(parts, assignment, { driver, spec, look, files, signal });
  moves.noteReceived(assignment, namesOf(look), true);
  const way = moves.seenOf(instanceId)?.way;
  tell(parts, assignment, { state: 'received', ...bytesOf(look), ...(way === undefined ? {} : { way }) });
  log.info('a guest was received', { instance: instanceId, move: migration.id });
}

/** The source itself when it has connected, otherwise the control plane. */
async function sourceOf(
  { moves, moveSource }: GuestParts,
  move: Move,
  signal: AbortSignal,
): Promise<{ readonly source: MoveSource; readonly way: MoveWay }> {
  const source = await moves.direct?.source(move, signal);
  return source === undefined ? { source: moveSource, way: 'relayed' } : { source, way: 'direct' };
}

/** What is damaged is found before the source gives its copy up. */
async function acceptAll(
  { volumeFiles }: GuestParts,
  assignment: Assignment,
  {
    driver,
    spec,
    look,
    files,
    signal,
  }: Means & { readonly look: IncomingLook; readonly files: IncomingFiles; readonly signal: AbortSignal },
): Promise<void> {
  for (const name of namesOf(look)) {
    const file = files.fileOf(assignment, name);
    if (name === diskName) await driver.migration.accept(spec, file, signal);
    else await volumeFiles?.check(file, signal);
  }
}

const namesOf = ({ files }: IncomingLook): string[] => files.map(({ name }) => name);
