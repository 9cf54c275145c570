// Receives a guest in a live move: a paused machine on this host waits for the disk and the memory of the guest. Must never resume the machine:
// the guest runs only when the control plane has assigned it to this host.

import type { Assignment, LiveMachine } from '../../../api/agent-protocol.ts';
import type { Step } from '../../../base/concurrency/keyed-reconciler.ts';
import { describeError } from '../../../base/log.ts';
import type { Driver, GuestLiveMigration, GuestSpec } from '../../drivers/driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { LedgerEntry } from '../../ledger/ledger.ts';
import type { LiveSource, MoveProgress } from '../../migration/move.ts';
import { expectVolumes, finishVolumes } from '../received-volumes.ts';
import { oldestGuest } from '../observe.ts';
import type { GuestParts } from '../parts.ts';
import { listen, meansToReceive, tell } from './receive.ts';

/** A broken connection leaves the guest running on its source. After this many failures the move is given up. */
const triesMax = 5;
/** Each progress report is a commit in the store. */
const progressMs = 1000;

export async function receiveLive(parts: GuestParts, { assignment }: LedgerEntry): Promise<Step> {
  const { migration, instanceId } = assignment;
  if (migration === undefined) return 'rest';
  const { state, id } = parts.moves.seenOf(instanceId) ?? {};
  if (id === migration.id && (state === 'received' || state === 'failed')) return 'rest';
  const hasArrived = oldestGuest(parts, instanceId, assignment.driver)?.guest.state === 'suspended';
  const abort = new AbortController();
  parts.notes.operations.set(instanceId, { kind: 'receive', id: migration.id, abort });
  try {
    if (hasArrived) return await confirm(parts, assignment, abort.signal);
    const { driver, spec } = meansToReceive(parts, assignment);
    const { live } = driver;
    if (live === undefined) throw new DriverError('NotPossible', `guests of driver "${driver.name}" cannot move live`);
    await listen(parts, assignment);
    if (id !== migration.id) {
      tell(parts, assignment, { state: 'preparing', bytes: 0 });
      await driver.migration.prepare(spec, abort.signal);
      tell(parts, assignment, { state: 'prepared', bytes: 0 });
    }
    if (!migration.copy) return 'rest'; // the control plane tells the source first
    await takeOver(parts, assignment, { driver, live, spec, signal: abort.signal });
  } catch (error) {
    if (abort.signal.aborted || parts.closing()) return 'go-on';
    // This may be the only copy of the guest: it is neither given up nor removed before the move has ended in the store.
    if (hasArrived) throw error;
    const tries = parts.moves.countTry(migration.id);
    const reason = describeError(error).slice(0, 1024);
    if (tries < triesMax && !isFinal(error)) {
      const known = parts.moves.seenOf(instanceId);
      if (known) tell(parts, assignment, { ...known, message: reason });
      throw error;
    }
    parts.log.warn('cannot receive a guest in a live move', { instance: instanceId, error: reason });
    tell(parts, assignment, { state: 'failed', bytes: 0, message: reason });
  } finally {
    parts.notes.operations.delete(instanceId);
  }
  return 'rest';
}

/**
 * An earlier agent process received the guest, perhaps without reporting that. The source may have seen a broken connection instead, and resumed
 * the guest: so the answer of the source decides.
 */
async function confirm(parts: GuestParts, assignment: Assignment, signal: AbortSignal): Promise<Step> {
  const { instanceId, migration } = assignment;
  const move = { instanceId, id: migration?.id ?? '' };
  await listen(parts, assignment);
  if (parts.moves.seenOf(instanceId)?.id !== move.id) tell(parts, assignment, { state: 'copying', bytes: 0 });
  const source = await parts.moves.direct?.source(move, signal);
  if (source === undefined)
    throw new DriverError('Internal', 'the host that the guest leaves has not connected to this host');
  if (await source.sent(move, signal)) {
    await finishVolumes(parts, assignment);
    tell(parts, assignment, { state: 'received', bytes: 0, way: 'direct' });
  } else tell(parts, assignment, { state: 'failed', bytes: 0, message: 'the guest still runs on the source' });
  return 'rest';
}

function isFinal(error: unknown): boolean {
  return error instanceof DriverError && error.code === 'NotPossible';
}

interface Means {
  readonly driver: Driver;
  readonly live: GuestLiveMigration;
  readonly spec: GuestSpec;
  readonly signal: AbortSignal;
}

async function takeOver(parts: GuestParts, assignment: Assignment, means: Means): Promise<void> {
  const { moves, log } = parts;
  const { driver, live, spec, signal } = means;
  const { instanceId, migration } = assignment;
  const move = { instanceId, id: migration?.id ?? '' };
  const source = await moves.direct?.source(move, signal);
  if (source === undefined)
    throw new DriverError('Internal', 'the host that the guest leaves has not connected to this host');
  const machine = await source.machine(move, signal);
  const failed = new AbortController();
  try {
    const volumes = await expectVolumes(parts, assignment, machine, signal);
    await live.expect(volumes.length === 0 ? spec : { ...spec, volumes }, machine, signal);
    moves.direct?.accept(move, (name) => live.connect(instanceId, name));
    log.info('receiving a guest in a live move', { instance: instanceId, move: move.id });
    const stillSinceMs = await sent(parts, assignment, {
      source,
      machine,
      live,
      signal: AbortSignal.any([signal, failed.signal]),
    });
    await finishVolumes(parts, assignment);
    moves.noteArrived(instanceId, { id: move.id, stillSinceMs });
  } catch (error) {
    failed.abort();
    // The machine that waits here may be incomplete, and must never run.
    if (!parts.closing()) await driver.remove(instanceId);
    throw error;
  } finally {
    moves.direct?.accept(move, undefined);
  }
  tell(parts, assignment, {
    ...moves.seenOf(instanceId),
    state: 'received',
    bytes: moves.seenOf(instanceId)?.bytes ?? 0,
    way: 'direct',
  });
  log.info('received a guest in a live move', { instance: instanceId, move: move.id });
}

/**
 * The source answers when its guest is paused permanently, and that is durable. Only then may this host report that it has the guest. Returns
 * since when the guest is paused, on this host's clock: the source says for how long, as the clocks of two hosts differ.
 */
async function sent(
  parts: GuestParts,
  assignment: Assignment,
  call: {
    readonly source: LiveSource;
    readonly machine: LiveMachine;
    readonly live: GuestLiveMigration;
    readonly signal: AbortSignal;
  },
): Promise<number> {
  const { source, live, signal } = call;
  const { instanceId, migration } = assignment;
  const move = { instanceId, id: migration?.id ?? '' };
  let toldMs = -Infinity;
  const onProgress = (seen: MoveProgress): void => {
    const nowMs = parts.clock.monotonicMs();
    if (nowMs - toldMs < progressMs) return;
    toldMs = nowMs;
    tell(parts, assignment, { state: 'copying', ...seen, way: 'direct' });
  };
  const sending = source.send(move, onProgress, signal).then((stillMs) => parts.clock.monotonicMs() - stillMs);
  const [stillSinceMs] = await Promise.all([sending, live.received(instanceId, signal)]);
  return stillSinceMs;
}
