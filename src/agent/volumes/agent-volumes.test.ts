import { afterEach, describe, expect, it } from 'vitest';
import type { AssignedVolume } from '../../api/agent-protocol.ts';
import { hostName, instanceId, makeHost, otherId, otherVolumeId, volumeId } from '../testing.ts';
import { VolumeError } from './files/volume-files.ts';

const gibibyte = 1024 ** 3;
const data: AssignedVolume = { volumeId, name: 'data', readOnly: false };
const more: AssignedVolume = { volumeId: otherVolumeId, name: 'more', readOnly: false };

describe('the agent and its volumes', () => {
  let host: ReturnType<typeof makeHost>;
  const begin = (): ReturnType<typeof makeHost> => {
    host = makeHost();
    return host;
  };
  /** With a volume that is ready, and a guest that has it. */
  const beginWithGuest = async (): Promise<ReturnType<typeof makeHost>> => {
    begin();
    await host.startAgent();
    host.plane.putVolume();
    host.plane.put({ volumes: [data] });
    await host.pass(5000);
    expect(host.guest()?.volumes).toMatchObject([{ volumeId, name: 'data', readOnly: false }]);
    return host;
  };
  afterEach(async () => {
    await host.stopAll();
    const faults = [...host.world.volumeFaults, ...host.world.doubleStarts];
    if (faults.length > 0) throw new Error(`had a volume twice, or ran twice: ${JSON.stringify(faults)}`);
  });

  it('makes what is assigned, and reports it with the guests, in one order', async () => {
    const { plane, startAgent, pass, disk } = begin();
    await startAgent();
    plane.putVolume({ sizeGiB: 3, snapshots: ['b', 'a'] });
    plane.put();
    await pass(5000);
    expect(plane.lastVolume()).toMatchObject({
      state: 'ready',
      sizeGiB: 3,
      snapshots: [{ name: 'a' }, { name: 'b' }],
    });
    expect(plane.volumeReports.at(-1)).toMatchObject({ observedGeneration: 1 });
    expect(disk.get(volumeId)?.sizeBytes).toBe(3 * gibibyte);
    const sequences = [...plane.reports, ...plane.volumeReports].map(({ sequence }) => sequence).sort((a, b) => a - b);
    expect(sequences).toEqual(sequences.map((_, index) => index + 1));
  });

  it('is quiet about volumes when nothing changes', async () => {
    const { plane, pass } = await beginWithGuest();
    await pass(60_000);
    const { length } = plane.volumeReports;
    await pass(3_600_000);
    expect(plane.volumeReports).toHaveLength(length);
  });

  it('never makes one again that was made once, whoever remembers it', async () => {
    const { plane, startAgent, pass, disk } = begin();
    const agent = await startAgent();
    plane.putVolume({ made: true });
    plane.putVolume({ volumeId: otherVolumeId });
    await pass(1000);
    expect(plane.lastVolume()).toMatchObject({ state: 'failed', reason: 'VolumeLost', sizeGiB: 0, snapshots: [] });
    expect(plane.lastVolume(otherVolumeId)).toMatchObject({ state: 'ready' });
    await agent.stop();
    disk.clear();
    await startAgent();
    await pass(1000);
    expect(plane.lastVolume(otherVolumeId)).toMatchObject({ state: 'failed', reason: 'VolumeLost' });
    expect(disk.size).toBe(0);
  });

  it('finds out by itself that one was lost, and that it was put back', async () => {
    const { plane, startAgent, pass, disk } = begin();
    await startAgent();
    plane.putVolume();
    await pass(1000);
    const lost = disk.get(volumeId) ?? expect.unreachable();
    disk.delete(volumeId);
    await pass(11 * 60_000);
    expect(plane.lastVolume()).toMatchObject({ state: 'failed', reason: 'VolumeLost' });
    disk.set(volumeId, lost);
    await pass(11 * 60_000);
    expect(plane.lastVolume()).toMatchObject({ state: 'ready' });
  });

  it('leaves alone what no assignment speaks of', async () => {
    const { plane, startAgent, pass, disk } = begin();
    disk.set(otherVolumeId, { sizeBytes: 1, content: 'precious', snapshots: [] });
    await startAgent();
    plane.putVolume();
    await pass(1000);
    plane.dropVolume();
    await pass(1000);
    plane.forget();
    plane.breakLines();
    await pass(60_000);
    expect([...disk.keys()].sort()).toEqual([volumeId, otherVolumeId]);
  });

  it('changes nothing by an old ledger', async () => {
    const { plane, startAgent, pass, disk } = begin();
    const agent = await startAgent();
    plane.putVolume({ snapshots: ['a'] });
    await pass(1000);
    await agent.stop();
    const volume = disk.get(volumeId) ?? expect.unreachable();
    volume.snapshots = [...volume.snapshots, { name: 'newer', createdAtMs: 1, content: '' }];
    plane.setAway(true);
    await startAgent();
    await pass(60_000);
    expect(volume.snapshots.map(({ name }) => name)).toEqual(['a', 'newer']);
  });

  it('begins and ends nothing of what is only to be kept, and says what there is', async () => {
    const { plane, startAgent, pass, disk } = begin();
    disk.set(volumeId, { sizeBytes: 2 * gibibyte, content: '', snapshots: [] });
    await startAgent();
    plane.putVolume({ want: 'kept', sizeGiB: 9, snapshots: ['a'] });
    plane.putVolume({ want: 'kept', volumeId: otherVolumeId });
    await pass(1000);
    expect(plane.lastVolume()).toEqual({ state: 'ready', sizeGiB: 2, usedBytes: 0, snapshots: [] });
    expect(plane.lastVolume(otherVolumeId)).toEqual({ state: 'absent' });
    expect([...disk.keys()]).toEqual([volumeId]);
  });

  it('says of a host that keeps none that it keeps none', async () => {
    begin().keepsVolumes = false;
    const { plane, startAgent, pass, guest } = host;
    await startAgent();
    plane.putVolume();
    plane.put({ volumes: [data] });
    await pass(1000);
    expect(plane.lastVolume()).toMatchObject({ state: 'failed', reason: 'NotPossible' });
    expect(guest()).toBeUndefined();
    expect(plane.last()).toMatchObject({
      state: 'preparing',
      progress: 'waiting for volume data: this host keeps no volumes',
    });
    plane.putVolume({ want: 'absent' });
    await pass(1000);
    expect(plane.lastVolume()).toEqual({ state: 'absent' });
  });

  it('says that the disk is full, tries again, and has it once there is room', async () => {
    const { plane, startAgent, pass } = begin();
    const failing = async (): Promise<void> => {
      throw new VolumeError('DiskFull', 'cannot make it: no room is left');
    };
    host.volumeTrouble = failing;
    await startAgent();
    plane.putVolume();
    await pass(10_000);
    const full = { state: 'failed', reason: 'DiskFull', message: 'cannot make it: no room is left' };
    expect(plane.lastVolume()).toMatchObject(full);
    expect(plane.volumeReports.filter(({ volume }) => volume.state === 'failed')).toHaveLength(1);
    host.volumeTrouble = async () => {};
    await pass(60_000);
    expect(plane.lastVolume()).toMatchObject({ state: 'ready' });
    host.volumeTrouble = failing;
    plane.putVolume({ sizeGiB: 2, snapshots: ['a'] });
    await pass(10_000);
    expect(plane.lastVolume()).toMatchObject({ state: 'ready', reason: 'DiskFull', sizeGiB: 1, snapshots: [] });
    host.volumeTrouble = async () => {};
    await pass(60_000);
    expect(plane.lastVolume()).toMatchObject({ state: 'ready', sizeGiB: 2, snapshots: [{ name: 'a' }] });
    expect(plane.lastVolume()).not.toHaveProperty('reason');
  });

  it('makes a copy once its snapshot is there, and keeps the snapshot until the copy is made', async () => {
    const { plane, startAgent, pass, disk } = begin();
    await startAgent();
    plane.putVolume({ volumeId: otherVolumeId, source: { volumeId, snapshot: 'a' } });
    await pass(1000);
    expect(plane.lastVolume(otherVolumeId)).toMatchObject({ state: 'failed', reason: 'SourceMissing' });
    plane.putVolume();
    await pass(1000);
    const original = disk.get(volumeId) ?? expect.unreachable();
    original.content = 'old';
    plane.putVolume({ snapshots: ['a'] });
    await pass(100);
    expect(disk.get(otherVolumeId)?.content).toBe('old');
    await pass(1000);
    expect(plane.lastVolume(otherVolumeId)).toMatchObject({ state: 'ready' });
  });

  it('removes what is to be absent once no guest has it, and says so', async () => {
    const { plane, pass, disk } = await beginWithGuest();
    plane.putVolume({ want: 'absent', made: true });
    await pass(1000);
    expect(plane.lastVolume()).toMatchObject({ state: 'ready', reason: 'RemovalWaits', instanceId });
    expect(disk.has(volumeId)).toBe(true);
    plane.put({ want: 'absent' });
    await pass(1000);
    expect(plane.lastVolume()).toEqual({ state: 'absent' });
    expect(disk.has(volumeId)).toBe(false);
  });

  it('removes and changes none while a driver does not see its guests', async () => {
    const { plane, startAgent, pass, disk } = begin();
    const agent = await startAgent();
    plane.putVolume();
    await pass(1000);
    await agent.stop();
    host.blindness = 'it is dark';
    plane.putVolume({ want: 'absent', made: true });
    await startAgent();
    await pass(60_000);
    expect(plane.lastVolume()).toMatchObject({ state: 'ready', reason: 'RemovalWaits' });
    expect(disk.has(volumeId)).toBe(true);
    host.blindness = undefined;
    await pass(120_000);
    expect(plane.lastVolume()).toEqual({ state: 'absent' });
  });

  it('has a guest wait for its volumes, says for which, and creates it with them', async () => {
    const { plane, startAgent, pass, guest } = begin();
    await startAgent();
    plane.put({ volumes: [data, { ...more, readOnly: true }] });
    await pass(2000);
    expect(guest()).toBeUndefined();
    expect(plane.last()).toMatchObject({
      state: 'preparing',
      progress: 'waiting for volume data: the control plane has not assigned it to this host yet',
    });
    plane.putVolume();
    await pass(2000);
    expect(plane.last()).toMatchObject({
      progress: 'waiting for volume more: the control plane has not assigned it to this host yet',
    });
    plane.putVolume({ volumeId: otherVolumeId, made: true });
    await pass(2000);
    expect(plane.last()).toMatchObject({ progress: expect.stringMatching(/^waiting for volume more: it was on this/) });
    plane.putVolume({ volumeId: otherVolumeId });
    await pass(5000);
    expect(plane.last()).toMatchObject({ state: 'running', ready: true, volumes: [volumeId, otherVolumeId] });
    expect(plane.last()).not.toHaveProperty('progress');
    expect(guest()?.volumes?.map(({ readOnly }) => readOnly)).toEqual([false, true]);
    expect(plane.lastVolume()).toMatchObject({ state: 'ready', instanceId });
  });

  it('gives volumes to a guest that runs, takes them, and gives them otherwise', async () => {
    const { plane, pass, guest, boots } = await beginWithGuest();
    plane.putVolume({ volumeId: otherVolumeId });
    plane.put({ volumes: [data, more] });
    await pass(2000);
    expect(plane.last()).toMatchObject({ state: 'running', volumes: [volumeId, otherVolumeId] });
    plane.put({ volumes: [{ ...more, readOnly: true }] });
    await pass(2000);
    expect(guest()?.volumes).toMatchObject([{ volumeId: otherVolumeId, readOnly: true }]);
    expect(plane.lastVolume()).not.toHaveProperty('instanceId');
    plane.put({});
    await pass(2000);
    expect(guest()?.volumes).toBeUndefined();
    expect(boots()).toBe(1);
  });

  it('gives and takes volumes of a guest that is stopped, from its next start', async () => {
    const { plane, pass, guest } = await beginWithGuest();
    plane.putVolume({ volumeId: otherVolumeId });
    plane.put({ want: 'stopped', volumes: [more] });
    await pass(5000);
    expect(guest()).toMatchObject({ state: 'stopped', volumes: [{ volumeId: otherVolumeId }] });
    plane.put({ want: 'running', volumes: [data] });
    await pass(5000);
    expect(guest()).toMatchObject({ state: 'running', volumes: [{ volumeId }] });
  });

  it('moves a volume from one guest to another, and never gives it to both', async () => {
    const { plane, pass, guest } = await beginWithGuest();
    plane.put({ instanceId: otherId, name: 'web-2', volumes: [data] });
    await pass(5000);
    expect(guest(otherId)).toBeUndefined();
    expect(plane.last(otherId)).toMatchObject({
      state: 'preparing',
      progress: 'waiting for volume data: guest "web-1" has it',
    });
    plane.put({});
    await pass(5000);
    expect(guest()?.volumes).toBeUndefined();
    expect(guest(otherId)).toMatchObject({ state: 'running', volumes: [{ volumeId }] });
    expect(plane.lastVolume()).toMatchObject({ instanceId: otherId });
  });

  it('says of a guest that does not let go, keeps its volume from others, and goes on when it has ended', async () => {
    begin().world.inject({ do: 'hold-volumes' });
    const { plane, startAgent, pass, guest } = host;
    await startAgent();
    plane.putVolume();
    plane.put({ volumes: [data] });
    await pass(5000);
    plane.put({});
    plane.put({ instanceId: otherId, volumes: [data] });
    await pass(60_000);
    expect(plane.lastVolume()).toMatchObject({
      state: 'ready',
      reason: 'DetachWaits',
      message: expect.stringContaining('does not let go'),
      instanceId,
    });
    expect(guest(otherId)).toBeUndefined();
    plane.put({ want: 'stopped' });
    await pass(10_000);
    expect(guest(otherId)).toMatchObject({ state: 'running', volumes: [{ volumeId }] });
    expect(plane.lastVolume()).toEqual(expect.objectContaining({ state: 'ready', instanceId: otherId }));
    expect(plane.lastVolume()).not.toHaveProperty('reason');
  });

  it('grows a volume and keeps its snapshots while a guest runs with it, and when it is stopped', async () => {
    const { plane, pass, disk } = await beginWithGuest();
    plane.putVolume({ sizeGiB: 2, snapshots: ['a'] });
    await pass(2000);
    expect(plane.lastVolume()).toMatchObject({ state: 'ready', sizeGiB: 2, snapshots: [{ name: 'a' }], instanceId });
    plane.put({ want: 'stopped', volumes: [data] });
    await pass(5000);
    plane.putVolume({ sizeGiB: 3, snapshots: ['b'] });
    await pass(2000);
    expect(plane.lastVolume()).toMatchObject({ state: 'ready', sizeGiB: 3, snapshots: [{ name: 'b' }] });
    expect(disk.get(volumeId)?.sizeBytes).toBe(3 * gibibyte);
    plane.putVolume({ sizeGiB: 2, snapshots: ['b'] });
    await pass(2000);
    expect(plane.lastVolume()).toMatchObject({ state: 'ready', sizeGiB: 3, reason: 'CannotShrink' });
  });

  it('finds the guests that have volumes after its own restart, and gives them nothing twice', async () => {
    const { plane, startAgent, pass, stopAll, guest, boots } = await beginWithGuest();
    await stopAll();
    await startAgent();
    await pass(20_000);
    expect(guest()).toMatchObject({ state: 'running', volumes: [{ volumeId }] });
    expect(boots()).toBe(1);
    expect(plane.lastVolume()).toMatchObject({ state: 'ready', instanceId });
    plane.put({ instanceId: otherId, volumes: [data] });
    await pass(5000);
    expect(guest(otherId)).toBeUndefined();
  });

  it('takes no volume from a guest that is to have it, whatever becomes of its file', async () => {
    const { plane, startAgent, pass, stopAll, guest, disk } = await beginWithGuest();
    plane.putVolume({ volumeId: otherVolumeId });
    await pass(1000);
    await stopAll();
    disk.delete(volumeId);
    await startAgent();
    plane.put({ volumes: [data, more] });
    await pass(20_000);
    expect(plane.lastVolume()).toMatchObject({ state: 'failed', reason: 'VolumeLost', instanceId });
    expect(guest()?.volumes?.map((each) => each.volumeId)).toEqual([volumeId, otherVolumeId]);
  });

  it('changes no volume whose guest is damaged, and gives it to nobody', async () => {
    const { plane, startAgent, pass, stopAll, world, guest, disk } = await beginWithGuest();
    await stopAll();
    world.damage(hostName, instanceId);
    await startAgent();
    plane.putVolume({ sizeGiB: 2 });
    plane.put({ instanceId: otherId, volumes: [data] });
    await pass(20_000);
    expect(plane.lastVolume()).toMatchObject({ state: 'ready', reason: 'GrowWaits', sizeGiB: 1 });
    expect(guest(otherId)).toBeUndefined();
    plane.putVolume({ want: 'absent' });
    await pass(20_000);
    expect(disk.has(volumeId)).toBe(true);
  });
});
