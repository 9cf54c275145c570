// Gives a guest volumes and takes them from it, while it runs or for its next start. Its record names every volume that it may have open,
// from before it gets it until it has let go; what it really has open, its hypervisor knows.

import { describeError } from '../../../../base/log.ts';
import type { GuestVolume, GuestVolumes } from '../../driver.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { inTheWay, noSuchGuest } from '../errors.ts';
import type { GuestRecord } from '../guest-record.ts';
import type { Hands } from '../hands.ts';
import type { Run, RunVolumes } from '../hypervisor.ts';
import { isDamaged } from '../records.ts';
import { checkId, type Slot } from '../slots.ts';

export function volumesOf(hands: Hands): GuestVolumes {
  const { slots } = hands;
  const inLine = <Result>(verb: string, instanceId: string, act: (slot: Slot) => Promise<Result>): Promise<Result> => {
    checkId(instanceId);
    const slot = slots.get(instanceId);
    if (slot === undefined) return Promise.reject(noSuchGuest(verb, instanceId));
    return slots.inLine(slot, async () => {
      if (slot.record === undefined || slot.record.removing) throw noSuchGuest(verb, instanceId);
      if (isDamaged(slot.record)) throw inTheWay(verb, instanceId);
      return act(slot);
    });
  };
  const running = (verb: string, { instanceId, run }: Slot): RunVolumes => {
    if (run?.volumes !== undefined) return run.volumes;
    throw new DriverError('NotPossible', `cannot ${verb} ${instanceId}: it does not run`);
  };
  return {
    set: (instanceId, wanted, signal) =>
      inLine('change the volumes of', instanceId, (slot) => setVolumes(hands, slot, { wanted, signal })),
    grow: (instanceId, volumeId, sizeBytes) =>
      inLine('grow a volume of', instanceId, (slot) => running('grow a volume of', slot).grow(volumeId, sizeBytes)),
    snapshot: (instanceId, volumeId, act, name) =>
      inLine('change a snapshot of a volume of', instanceId, (slot) =>
        running('change a snapshot of a volume of', slot).snapshot(volumeId, act, name),
      ),
  };
}

async function setVolumes(
  hands: Hands,
  slot: Slot,
  { wanted, signal }: { readonly wanted: readonly GuestVolume[]; readonly signal: AbortSignal },
): Promise<void> {
  const volumes = slot.run?.volumes;
  if (volumes === undefined) {
    if (slot.run !== undefined)
      throw new DriverError('NotPossible', `cannot change the volumes of ${slot.instanceId} while it runs`);
    if (slot.record?.saved === true) return assertSame(slot, wanted);
    return note(hands, slot, wanted);
  }
  const open = await volumes.open();
  const stays = (volume: GuestVolume): boolean =>
    open.some(
      ({ volumeId, readOnly, attached }) => attached && volumeId === volume.volumeId && readOnly === volume.readOnly,
    );
  let failed: { readonly error: unknown } | undefined;
  // One that does not let go keeps no other from coming and going.
  const attempt = async (act: () => Promise<void>): Promise<void> => {
    if (signal.aborted)
      throw new DriverError('Aborted', `the change of the volumes of ${slot.instanceId} was given up`);
    try {
      await act();
    } catch (error) {
      failed ??= { error };
    }
  };
  const leaving = new Set(
    [...open, ...noted(slot)]
      .filter(({ volumeId }) => !wanted.some((volume) => volume.volumeId === volumeId && stays(volume)))
      .map(({ volumeId }) => volumeId),
  );
  for (const volumeId of leaving) {
    await attempt(async () => {
      const held = open.find((each) => each.volumeId === volumeId);
      // It could not answer, and a resume would wait for that.
      if (held?.attached === true && slot.record?.suspended === true)
        throw new DriverError(
          'NotPossible',
          `the guest is suspended, and lets go of volume ${volumeId} when it goes on, or is stopped: berth resume, berth stop`,
        );
      if (held !== undefined) await volumes.detach(volumeId, signal);
      await note(
        hands,
        slot,
        noted(slot).filter((each) => each.volumeId !== volumeId),
      );
    });
  }
  for (const volume of wanted.filter((each) => !stays(each))) {
    if (noted(slot).some(({ volumeId }) => volumeId === volume.volumeId)) continue; // it did not let go
    await attempt(() => attach(hands, slot, { volume, volumes }));
  }
  if (failed !== undefined) throw failed.error;
  await note(hands, slot, wanted);
}

/** The memory in its file is of a machine with these volumes. */
function assertSame(slot: Slot, wanted: readonly GuestVolume[]): void {
  const text = (volumes: readonly GuestVolume[]): string =>
    JSON.stringify(volumes.map(({ volumeId, readOnly }) => [volumeId, readOnly]).sort());
  if (text(wanted) === text(noted(slot))) return;
  throw new DriverError(
    'NotPossible',
    'the guest is suspended to disk, and its volumes change when it goes on, or is stopped: berth resume, berth stop',
  );
}

async function attach(
  hands: Hands,
  slot: Slot,
  { volume, volumes }: { readonly volume: GuestVolume; readonly volumes: RunVolumes },
): Promise<void> {
  const before = noted(slot);
  await note(hands, slot, [...before, volume]);
  try {
    await volumes.attach(volume);
  } catch (error) {
    // When that is unknown, it may have the volume, or get it yet: then that stays noted.
    const refused = error instanceof DriverError && (error.code === 'NotPossible' || error.code === 'DiskFull');
    const left = refused ? await volumes.open().catch(() => undefined) : undefined;
    if (left?.some(({ volumeId }) => volumeId === volume.volumeId) === false) await note(hands, slot, before);
    throw error;
  }
}

/** What an earlier agent began and did not write down, or wrote down and did not begin, is mended when the volumes are set next. */
export async function noteOpenVolumes(hands: Hands, slot: Slot, run: Run): Promise<void> {
  if (run.volumes === undefined || !(await run.alive().catch(() => false))) return;
  try {
    const unknown = (await run.volumes.open()).filter(
      ({ volumeId }) => !noted(slot).some((each) => each.volumeId === volumeId),
    );
    if (unknown.length === 0) return;
    const found = unknown.map(({ volumeId, path, readOnly }) => ({ volumeId, name: volumeId, path, readOnly }));
    await note(hands, slot, [...noted(slot), ...found]);
  } catch (error) {
    hands.log.warn('cannot see which volumes a guest has; those of its record are believed', {
      instance: slot.instanceId,
      error: describeError(error),
    });
  }
}

/** Before the record forgets them: it tells the next agent what is to be taken. */
export async function takeVolumes(hands: Hands, slot: Slot, volumes: readonly GuestVolume[]): Promise<void> {
  if (hands.hypervisor.takeVolume === undefined) return;
  const directory = await hands.directoryOf(slot.instanceId);
  for (const volume of volumes) await hands.hypervisor.takeVolume({ directory, volume });
}

const noted = (slot: Slot): NonNullable<GuestRecord['volumes']> => slot.record?.volumes ?? [];

async function note(hands: Hands, slot: Slot, volumes: readonly GuestVolume[]): Promise<void> {
  if (JSON.stringify(volumes) === JSON.stringify(noted(slot))) return;
  const leaving = noted(slot).filter(({ volumeId }) => !volumes.some((each) => each.volumeId === volumeId));
  await takeVolumes(hands, slot, leaving);
  await hands.slots.save(slot, { volumes: volumes.length === 0 ? undefined : volumes.map((each) => ({ ...each })) });
}
