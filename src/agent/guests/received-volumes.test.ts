import { beforeEach, describe, expect, it } from 'vitest';
import type { Assignment, VolumeAssignment } from '../../api/agent-protocol.ts';
import type { GuestState } from '../../api/agent-protocol.ts';
import type { Driver } from '../drivers/driver.ts';
import type { Ledger } from '../ledger/ledger.ts';
import { createMemoryIncomingFiles } from '../migration/memory-incoming-files.ts';
import { Moves } from '../migration/moves.ts';
import { createMemoryVolumeFiles, type VolumeDisk } from '../volumes/files/memory-volume-files.ts';
import { createManualClock } from '../../base/manual-clock.ts';
import { discardReceived, expectVolumes, finishVolumes } from './received-volumes.ts';

const instanceId = `inst_${'0'.repeat(26)}`;
const volumeId = `vol_${'0'.repeat(26)}`;
const incoming = { instanceId, incarnation: 2 };

describe('the volume of a guest that arrived live', () => {
  let disk: VolumeDisk;
  let moves: Moves;
  const files = createMemoryIncomingFiles(new Map());

  beforeEach(async () => {
    disk = new Map();
    const look = { id: 'mig_1', whole: true, files: [{ name: volumeId, sizeBytes: 1, doneBytes: 0 }] };
    await files.expect(incoming, look);
    moves = new Moves({ drivers: [], ledger: {} as Ledger, volumeFiles: undefined, files }); // only its files are asked for
    moves.noteReceived(incoming, [volumeId], true);
  });

  const isThereAfter = async (
    want: Assignment['want'],
    change: { incarnation?: number; state?: GuestState; volume?: VolumeAssignment['want'] } = {},
  ): Promise<boolean> => {
    const { incarnation = 2, state = 'suspended', volume } = change;
    const guest = { instanceId, incarnation: 2, state, ready: true, ports: [], phases: [] };
    const driver = { name: 'fake', guests: () => [guest] } as unknown as Driver; // no other part is asked
    const volumeOf = () => (volume === undefined ? undefined : { want: volume });
    const ledger = { confirmed: true, volumeOf } as unknown as Ledger; // the same
    const volumeFiles = createMemoryVolumeFiles({ disk, clock: createManualClock() });
    const assignment = { instanceId, incarnation, want, driver: 'fake' } as Assignment; // the fields that count
    await discardReceived({ moves, ledger, volumeFiles, drivers: [driver], ready: () => true }, { assignment });
    return (await files.look(incoming)) !== undefined;
  };

  it.each([
    ['before the commit', 'incoming', {}],
    ['while its assignment is on the way', 'running', {}],
    ['before it is a volume of this host', 'running', { volume: 'present' }],
    ['also when the instance is deleted at once', 'absent', { volume: 'present' }],
    ['also when the instance is placed again at once', 'running', { incarnation: 3, volume: 'present' }],
  ] as const)('stays %s', async (_when, want, change) => {
    expect(await isThereAfter(want, change)).toBe(true);
  });

  it.each([
    ['the move came to nothing', 'absent', {}],
    ['the volume is to be deleted', 'running', { volume: 'absent' }],
    ['the move of an earlier incarnation came to nothing', 'running', { incarnation: 3 }],
  ] as const)('goes when %s', async (_when, want, change) => {
    expect(await isThereAfter(want, change)).toBe(false);
  });

  it('goes once it is a volume of this host', async () => {
    disk.set(volumeId, { sizeBytes: 1, content: '', snapshots: [] });
    expect(await isThereAfter('running', { volume: 'present' })).toBe(false);
  });
});

describe('the volumes of a guest that is about to arrive live', () => {
  const files = createMemoryIncomingFiles(new Map());
  const moves = new Moves({ drivers: [], ledger: {} as Ledger, volumeFiles: undefined, files }); // only its files are asked for
  const volumeFiles = createMemoryVolumeFiles({ disk: new Map(), clock: createManualClock() });
  const parts = { moves, volumeFiles };
  const { signal } = new AbortController();
  const disk = { name: 'disk', sizeBytes: 9 };
  const volume = { name: volumeId, sizeBytes: 7, label: 'data', slot: 6 };
  const orders = (volumes: string[]): Assignment => {
    const migration = { id: 'mig_1', role: 'incoming', copy: true, live: true, volumes };
    return { ...incoming, migration } as unknown as Assignment; // the fields that count
  };
  const expected = (volumes: string[], disks = [disk]) =>
    expectVolumes(parts, orders(volumes), { parts: [], disks, memoryMiB: 1, ready: true }, signal);

  it('are files of the move, complete once the guest has arrived', async () => {
    const [given] = await expected([volumeId], [disk, volume]);
    expect(given).toMatchObject({ volumeId, name: 'data', slot: 6, readOnly: false });
    expect(moves.volumeOf(volumeId)).toBeUndefined();
    given?.received?.write(Buffer.from('content'));
    await finishVolumes(parts, orders([volumeId]));
    await finishVolumes(parts, orders([volumeId]));
    expect(await moves.volumeOf(volumeId)?.bytes()).toEqual(Buffer.from('content'));
    expect(moves.diskOf(incoming)).toBeUndefined();
  });

  it('are none where it has none', async () => {
    expect(await expected([])).toEqual([]);
    await finishVolumes(
      { moves: new Moves({ drivers: [], ledger: {} as Ledger, volumeFiles, files: undefined }) },
      orders([]),
    ); // asks for nothing else
  });

  it.each([
    ['it has one more', [], [disk, volume]],
    ['it has not got one of them yet', [volumeId], [disk]],
  ])('are refused when %s', async (_why, volumes, disks) => {
    await expect(expected(volumes, disks)).rejects.toThrow(
      /the guest has open (no volume|vol_0+), and (no volume|vol_0+) move/,
    );
  });
});
