// Attaches, detaches, grows and snapshots the volumes of fake guests.

import { sleep } from '../../../base/clock.ts';
import { firstOf } from '../../../base/concurrency/first-of.ts';
import { DriverError } from '../../host/driver-error.ts';
import { growPretended, type PretendedVolume, snapshotPretended } from '../../volumes/files/memory-volume-files.ts';
import type { GuestVolume, GuestVolumes } from '../driver.ts';
import type { FakeGuest } from './fake-guest.ts';
import type { Hands } from './hands.ts';

export function guestVolumes(hands: Hands): GuestVolumes {
  return {
    set: (instanceId, wanted, signal) =>
      hands.inLine(instanceId, async () => {
        await setVolumes(hands, hands.intact('change the volumes of', instanceId), { wanted, signal });
      }),
    grow: (instanceId, volumeId, sizeBytes) =>
      hands.inLine(instanceId, async () =>
        growPretended(opened(hands, { verb: 'grow', instanceId, volumeId }), sizeBytes),
      ),
    snapshot: (instanceId, volumeId, act, name) =>
      hands.inLine(instanceId, async () =>
        snapshotPretended(opened(hands, { verb: 'snapshot', instanceId, volumeId }), {
          act,
          name,
          nowMs: hands.clock.nowMs(),
        }),
      ),
  };
}

async function setVolumes(
  hands: Hands,
  guest: FakeGuest,
  { wanted, signal }: { readonly wanted: readonly GuestVolume[]; readonly signal: AbortSignal },
): Promise<void> {
  const { instanceId } = guest;
  const had = guest.volumes ?? [];
  if (JSON.stringify(had) === JSON.stringify(wanted)) return;
  if (guest.running) {
    const over = firstOf(signal, hands.closing);
    await sleep(hands.clock, hands.spread(hands.world.latencies.startMs), over.signal);
    over.forget();
    hands.throwIfClosed(instanceId);
    if (signal.aborted) throw new DriverError('Aborted', `the change of the volumes of ${instanceId} was given up`);
  }
  const kept = had.filter(({ volumeId }) => !wanted.some((each) => each.volumeId === volumeId));
  const holds = guest.running && kept.length > 0 && guest.faults.some((fault) => fault.do === 'hold-volumes');
  hands.world.setVolumes(guest, holds ? [...wanted, ...kept] : wanted);
  if (!holds) return;
  throw new DriverError('NotPossible', `${instanceId} does not let go of volume ${kept[0]?.name}: a planted fault`);
}

/** A volume that a running guest has open. */
function opened(
  hands: Hands,
  { verb, instanceId, volumeId }: { readonly verb: string; readonly instanceId: string; readonly volumeId: string },
): PretendedVolume {
  const guest = hands.here(`${verb} a volume of`, instanceId);
  const volume = hands.world.volumeDisk(hands.host).get(volumeId);
  const has = guest.running && guest.volumes?.some((each) => each.volumeId === volumeId);
  if (has && !guest.damaged && volume !== undefined) return volume;
  throw new DriverError('NotPossible', `cannot ${verb} volume ${volumeId}: ${instanceId} does not have it open`);
}
