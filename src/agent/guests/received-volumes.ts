// The volumes of a guest that moves to this host, before they are volumes of this host: files of the move, which belong to nothing until the
// commit of the move. Must never delete a file that is the only copy of a volume of this host.

import type { Assignment, LiveMachine } from '../../api/agent-protocol.ts';
import type { GuestVolume } from '../drivers/driver.ts';
import { DriverError } from '../host/driver-error.ts';
import { diskName, type Incoming } from '../migration/moved-files.ts';
import type { LedgerEntry } from '../ledger/ledger.ts';
import { isUnfinished } from './guest-state.ts';
import { oldestGuest } from './observe.ts';
import type { GuestParts } from './parts.ts';

/** Empty files as large as the volumes of the guest that runs at its source. They are complete once `finishVolumes` says so. */
export async function expectVolumes(
  { moves, volumeFiles }: Pick<GuestParts, 'moves' | 'volumeFiles'>,
  assignment: Assignment,
  { disks }: LiveMachine,
  signal: AbortSignal,
): Promise<GuestVolume[]> {
  const { migration } = assignment;
  const volumes = disks.filter(({ name }) => name !== diskName);
  const others = (migration?.volumes ?? []).filter((id) => !volumes.some(({ name }) => name === id));
  if (others.length > 0 || volumes.length > (migration?.volumes.length ?? 0))
    throw new DriverError(
      'HypervisorFailed', // tried again: a guest may be about to get, or to let go of, one
      `the guest has open ${namesOf(volumes.map(({ name }) => name))}, and ${namesOf(migration?.volumes ?? [])} move with it`,
    );
  if (volumes.length === 0) return [];
  const { files } = moves;
  if (files === undefined || volumeFiles === undefined)
    throw new DriverError('NotPossible', 'this host keeps no volumes');
  const look = {
    id: migration?.id ?? '',
    whole: false,
    files: volumes.map(({ name, sizeBytes }) => ({ name, sizeBytes, doneBytes: 0 })),
  };
  await files.expect(assignment, look);
  moves.noteReceived(
    assignment,
    look.files.map(({ name }) => name),
    false,
  );
  return Promise.all(
    volumes.map(async ({ name, sizeBytes, label = name, slot }) => {
      const received = files.fileOf(assignment, name);
      await volumeFiles.makeEmpty(received.path, sizeBytes, signal);
      const at = slot === undefined ? {} : { slot };
      return { volumeId: name, name: label, path: received.path, readOnly: false, received, ...at };
    }),
  );
}

/** All of the guest has arrived. Harmless a second time, and where it has no volumes. */
export async function finishVolumes({ moves }: Pick<GuestParts, 'moves'>, assignment: Assignment): Promise<void> {
  const look = await moves.files?.look(assignment);
  if (look === undefined || look.id !== assignment.migration?.id) return;
  if (!look.whole) await moves.files?.finish(assignment);
  moves.noteReceived(
    assignment,
    look.files.map(({ name }) => name),
    true,
  );
}

/** Deletes what is left of moves that came to nothing, and of a guest that has its disk and volumes now. */
export async function discardReceived(parts: ReceivedParts, { assignment }: LedgerEntry): Promise<void> {
  const { moves, ledger } = parts;
  const { instanceId, incarnation, want, driver } = assignment;
  if (!ledger.confirmed) return;
  const guest = oldestGuest(parts, instanceId, driver)?.guest;
  const made = guest?.incarnation === incarnation && guest.state !== 'preparing' && !isUnfinished(guest);
  // A guest that arrived live is here before the commit, and its volumes are not yet volumes of this host.
  const settled = made && want !== 'incoming';
  const isOver = (received: number): boolean =>
    received < incarnation || (received === incarnation && (want === 'absent' || settled));
  for (const incoming of moves.leftovers(instanceId, isOver)) {
    const strict = incoming.incarnation === incarnation && want !== 'absent';
    if (!(await hasOnlyCopy(parts, incoming, strict))) await moves.discard(incoming);
  }
}

type ReceivedParts = Pick<GuestParts, 'moves' | 'ledger' | 'volumeFiles' | 'drivers' | 'ready'>;

/** `strict`: the move was committed, and volumes of which nothing is known here yet belong to this host as well. */
async function hasOnlyCopy(
  { moves, ledger, volumeFiles }: ReceivedParts,
  incoming: Incoming,
  strict: boolean,
): Promise<boolean> {
  for (const name of moves.namesOf(incoming)) {
    if (name === diskName) continue;
    const want = ledger.volumeOf(name)?.want;
    const isOurs = want === undefined ? strict : want !== 'absent';
    if (isOurs && (await volumeFiles?.look(name))?.found !== 'volume') return true;
  }
  return false;
}

const namesOf = (ids: readonly string[]): string => (ids.length === 0 ? 'no volume' : ids.join(', '));
