import { describe, expect, it } from 'vitest';
import type { FakeGuest } from '../../agent/drivers/fake/world.ts';
import { testHost, testInstance, testVolume } from '../../core/testing.ts';
import { testHistory } from '../test-history.ts';
import { volumesChecker } from './volumes.ts';

const at = 'h1';
const [host] = testHost(at);
const { metadata, ...data } = testVolume('data', { sizeGiB: 1 }, { phase: 'Ready', made: true, host: at });
const volume = { ...data, metadata, status: { ...data.status, observedGeneration: metadata.generation } };
const web = testInstance('web', { volumes: [{ name: 'data' }] }, { phase: 'Running', host: at, incarnation: 1 });
const other = testInstance('other', {}, { phase: 'Running', host: at, incarnation: 1 });
const having: Partial<FakeGuest> = {
  volumes: [{ volumeId: metadata.id, name: 'data', path: '/data', readOnly: false }],
};
const lacking = `the guest of web on h1 has the volumes none instead of ${metadata.id}`;

/** An instance that is to have a volume, which its host has. */
function begin() {
  const run = testHistory(volumesChecker);
  run.commit(host, volume, web);
  run.volumes.set(at, new Map([[metadata.id, { sizeBytes: 2 ** 30, content: '', snapshots: [] }]]));
  return run;
}

describe('a volume at rest', () => {
  it('is in the guest that is to have it', () => {
    const { guest, unrest } = begin();
    guest(at, web.metadata.id, having);
    expect(unrest()).toEqual([]);
  });

  it('is missed where it is in no guest, after a restore, too', () => {
    const { guest, unrest, restored } = begin();
    guest(at, web.metadata.id);
    expect(unrest()).toEqual([lacking]);
    restored();
    expect(unrest()).toEqual([lacking]);
  });

  it('stays in a guest that was made after the backup', () => {
    const { guest, unrest, restored } = begin();
    guest(at, web.metadata.id);
    guest(at, other.metadata.id, having);
    expect(unrest()).toEqual([lacking]);
    restored();
    expect(unrest()).toEqual([]);
  });

  it('does not stay in one that the backup knows', () => {
    const { commit, guest, unrest, restored } = begin();
    commit(other);
    guest(at, web.metadata.id);
    guest(at, other.metadata.id, having);
    restored();
    expect(unrest()).toContain(lacking);
  });

  it('is as large as it is wanted', () => {
    const { guest, unrest, volumes } = begin();
    guest(at, web.metadata.id, having);
    volumes.set(at, new Map([[metadata.id, { sizeBytes: 2 ** 31, content: '', snapshots: [] }]]));
    expect(unrest()).toEqual([`volume data (${metadata.id}) on h1 has 2 of 1 GiB`]);
  });

  it('has a record', () => {
    const { guest, unrest, volumes } = begin();
    guest(at, web.metadata.id, having);
    volumes.get(at)?.set('vol_left', { sizeBytes: 2 ** 30, content: '', snapshots: [] });
    expect(unrest()).toEqual(['volume vol_left is left on h1, and there is no record of it']);
  });
});
