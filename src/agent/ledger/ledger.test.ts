import { mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../base/log.ts';
import { createManualClock } from '../../base/manual-clock.ts';
import { type Ledger, openLedger } from './ledger.ts';
import { ledgerFileAt } from './ledger-file.ts';
import { assignment, instanceId, otherId, otherVolumeId, volumeAssignment, volumeId } from '../testing.ts';

describe('the ledger', () => {
  let directory: string;
  let path: string;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-ledger-'));
    path = join(directory, 'ledger.json');
  });
  afterEach(() => rm(directory, { recursive: true }));

  const open = (owner = { host: 'host-1', machineId: 'm-1' }): Promise<Ledger> =>
    openLedger({ file: ledgerFileAt(path), owner, clock: createManualClock(), log: silentLogger });
  const sync = (...assignments: ReturnType<typeof assignment>[]) =>
    ({ type: 'sync', revision: 1, assignments }) as const;
  const put = (change: Parameters<typeof assignment>[0]) =>
    ({ type: 'put', revision: 1, assignment: assignment(change) }) as const;
  const drop = (incarnation: number) => ({ type: 'drop', revision: 1, instanceId, incarnation }) as const;
  const incarnations = (ledger: Ledger): number[] =>
    ledger.entriesOf(instanceId).map((entry) => entry.assignment.incarnation);

  it('comes back as it was', async () => {
    const before = await open();
    before.apply(sync(assignment(), assignment({ instanceId: otherId })));
    before.apply(put({ revision: 2, want: 'stopped' }));
    await before.close();
    const after = await open();
    expect(after.newestOf(instanceId)?.assignment.want).toBe('stopped');
    expect(after.instanceIds()).toEqual([instanceId, otherId]);
    await after.close();
  });

  it('keeps the incarnations of one instance apart, oldest first', async () => {
    const ledger = await open();
    ledger.apply(put({ incarnation: 2 }));
    ledger.apply(put({ incarnation: 1, want: 'absent' }));
    expect(incarnations(ledger)).toEqual([1, 2]);
    expect(ledger.newestOf(instanceId)?.assignment.incarnation).toBe(2);
    ledger.apply(drop(1));
    expect(incarnations(ledger)).toEqual([2]);
    await ledger.close();
  });

  it('forgets what a sync does not hold, and says whose entries changed', async () => {
    const ledger = await open();
    ledger.apply(sync(assignment()));
    expect(ledger.apply(sync(assignment({ instanceId: otherId }))).instances).toEqual([instanceId, otherId]);
    expect(ledger.instanceIds()).toEqual([otherId]);
    await ledger.close();
  });

  it('keeps why a guest failed over a sync and a restart, and until it is told otherwise', async () => {
    const failure = { code: 'DiskFull', message: 'no room' };
    const before = await open();
    before.apply(sync(assignment()));
    before.setFailure({ assignment: assignment() }, failure);
    before.apply(sync(assignment({ revision: 2 })));
    await before.close();
    const after = await open();
    expect(after.newestOf(instanceId)?.failure).toEqual(failure);
    after.setFailure({ assignment: assignment() }, undefined);
    expect(after.newestOf(instanceId)).toEqual({ assignment: assignment({ revision: 2 }) });
    await after.close();
  });

  it('changes nothing for what comes late or twice', async () => {
    const ledger = await open();
    ledger.apply(put({ revision: 5, want: 'stopped' }));
    expect(ledger.apply(put({ revision: 5 })).instances).toEqual([]);
    expect(ledger.apply(put({ revision: 4 })).instances).toEqual([]);
    expect(ledger.apply(drop(1)).instances).toEqual([instanceId]);
    expect(ledger.apply(drop(1)).instances).toEqual([]);
    expect(ledger.apply(put({ revision: 6 })).instances).toEqual([]);
    expect(incarnations(ledger)).toEqual([]);
    await ledger.close();
  });

  it('takes a dropped incarnation back from a sync: that is the whole truth', async () => {
    const ledger = await open();
    ledger.apply(put({}));
    ledger.apply(drop(1));
    ledger.apply(sync(assignment({ revision: 9 })));
    expect(incarnations(ledger)).toEqual([1]);
    await ledger.close();
  });

  it.each([
    ['cut short', (text: string) => text.slice(0, 40)],
    ['empty', () => ''],
    ['something else', () => '{"version":1}'],
    ['of a later version', (text: string) => text.replace('"version":1', '"version":2')],
    ['holding an id that is a path', (text: string) => text.replaceAll(instanceId, '../../etc/passwd')],
  ])('is set aside when it is %s', async (_, damage) => {
    const before = await open();
    before.apply(sync(assignment()));
    await before.close();
    const damaged = damage(await readFile(path, 'utf8'));
    await writeFile(path, damaged);
    const after = await open();
    expect(after.instanceIds()).toEqual([]);
    expect(await readFile(`${path}.damaged`, 'utf8')).toBe(damaged);
    await after.close();
  });

  it.each([
    ['host', { host: 'host-2', machineId: 'm-1' }],
    ['machine', { host: 'host-1', machineId: 'm-2' }],
  ])('is set aside when it belongs to another %s', async (_, owner) => {
    const before = await open();
    before.apply(sync(assignment()));
    await before.close();
    const after = await open(owner);
    expect(after.instanceIds()).toEqual([]);
    expect(await readdir(directory)).toEqual(['ledger.json.damaged']);
    await after.close();
  });

  it('writes no value of a secret', async () => {
    const before = await open();
    before.apply(put({ secrets: { db: { password: 'hunter22' } } }));
    expect(before.newestOf(instanceId)?.assignment.secrets).toEqual({ db: { password: 'hunter22' } });
    await before.close();
    expect(await readFile(path, 'utf8')).not.toContain('hunter22');
    const after = await open();
    expect(after.newestOf(instanceId)?.assignment.secrets).toBeUndefined();
    await after.close();
  });

  it('is for nobody else to read: user-data may hold secrets', async () => {
    const ledger = await open();
    ledger.apply(sync(assignment()));
    await ledger.close();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it('writes many changes of one moment at once, and misses none', async () => {
    const written: string[] = [];
    const ledger = await openLedger({
      file: { read: async () => null, write: async (text) => void written.push(text), setAside: async () => '' },
      owner: { host: 'host-1', machineId: 'm-1' },
      clock: createManualClock(),
      log: silentLogger,
    });
    for (let revision = 1; revision <= 100; revision++) ledger.apply(put({ revision, generation: revision }));
    await ledger.flush();
    expect(written).toHaveLength(1);
    ledger.apply(put({ revision: 101, generation: 101 }));
    await ledger.flush();
    expect(written.at(-1)).toContain('"generation":101');
    await ledger.close();
  });

  describe('of volumes', () => {
    const putVolume = (change: Parameters<typeof volumeAssignment>[0]) =>
      ({ type: 'put-volume', revision: 1, volume: volumeAssignment(change) }) as const;
    const syncVolumes = (...volumes: ReturnType<typeof volumeAssignment>[]) => ({ ...sync(), volumes }) as const;

    it('comes back as it was, with which of them were seen', async () => {
      const before = await open();
      before.apply(syncVolumes(volumeAssignment(), volumeAssignment({ volumeId: otherVolumeId })));
      before.apply(putVolume({ revision: 2, sizeGiB: 7 }));
      before.noteVolumeMade(volumeId);
      await before.close();
      const after = await open();
      expect(after.volumeIds()).toEqual([volumeId, otherVolumeId]);
      expect(after.volumeOf(volumeId)).toMatchObject({ sizeGiB: 7, made: true });
      expect(after.volumeOf(otherVolumeId)).toMatchObject({ made: false });
      after.apply(syncVolumes(volumeAssignment({ revision: 3 })));
      expect(after.volumeOf(volumeId)).toMatchObject({ revision: 3, made: true });
      expect(after.volumeOf(otherVolumeId)).toBeUndefined();
      await after.close();
    });

    it('changes nothing for what comes late, twice, or after it was dropped', async () => {
      const ledger = await open();
      expect(ledger.apply(putVolume({ revision: 5, sizeGiB: 7 }))).toEqual({ instances: [], volumes: [volumeId] });
      expect(ledger.apply(putVolume({ revision: 5 })).volumes).toEqual([]);
      expect(ledger.apply(putVolume({ revision: 4 })).volumes).toEqual([]);
      const gone = { type: 'drop-volume', revision: 1, volumeId } as const;
      expect(ledger.apply(gone).volumes).toEqual([volumeId]);
      expect(ledger.apply(gone).volumes).toEqual([]);
      expect(ledger.apply(putVolume({ revision: 6 })).volumes).toEqual([]);
      ledger.noteVolumeMade(volumeId);
      expect(ledger.volumeIds()).toEqual([]);
      await ledger.close();
    });

    it('has none where an older Berth wrote it, which can read it while there are none', async () => {
      const before = await open();
      before.apply(sync(assignment()));
      await before.close();
      const stored = JSON.parse(await readFile(path, 'utf8'));
      expect(Object.keys(stored)).toEqual(['version', 'host', 'machineId', 'entries']);
      const after = await open();
      expect(after.instanceIds()).toEqual([instanceId]);
      expect(after.volumeIds()).toEqual([]);
      await after.close();
    });
  });
});
