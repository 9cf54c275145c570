import { describe, expect, it } from 'vitest';
import type { VolumeLook } from './files/volume-files.ts';
import { type ObservedVolume, planVolume, type VolumeAction, type WantedVolume } from './volume-plan.ts';

const gibibyte = 1024 ** 3;
const volume = (sizeGiB: number, ...snapshots: string[]): VolumeLook => ({
  found: 'volume',
  sizeBytes: sizeGiB * gibibyte,
  usedBytes: 1,
  snapshots: snapshots.map((name) => ({ name, createdAtMs: 1 })),
});
const nothing: VolumeLook = { found: 'nothing' };
const unfinished: VolumeLook = { found: 'unfinished' };
const damage: VolumeLook = { found: 'damage', why: 'it is no qcow2 file' };
const guest = { instanceId: 'inst_1' };
const wanted = (change: Partial<WantedVolume> = {}): WantedVolume => ({
  want: 'present',
  sizeGiB: 2,
  snapshots: [],
  made: false,
  ...change,
});
const observed = (look: VolumeLook, change: Partial<ObservedVolume> = {}): ObservedVolume => ({
  look,
  holder: 'none',
  copied: false,
  ...change,
});
const words = (actions: readonly VolumeAction[]): string[] =>
  actions.map((action) => ('name' in action ? `${action.do} ${action.name}` : action.do));

describe('the plan of a volume', () => {
  // what, wanted, observed, actions, state and reason
  it.each<[string, WantedVolume, ObservedVolume, string[], string]>([
    ['is to make one that is not there', wanted(), observed(nothing), ['make'], 'preparing'],
    ['is to make one that was not finished', wanted(), observed(unfinished), ['make'], 'preparing'],
    ['is to make one whoever runs here', wanted(), observed(nothing, { holder: 'unknown' }), ['make'], 'preparing'],
    ['is never to make one again', wanted({ made: true }), observed(nothing), [], 'failed VolumeLost'],
    ['is never to finish one again', wanted({ made: true }), observed(unfinished), [], 'failed VolumeLost'],
    ['is not to make one that a guest had', wanted(), observed(nothing, { holder: guest }), [], 'failed VolumeLost'],
    ['is to leave a damaged one alone', wanted(), observed(damage), [], 'failed VolumeDamaged'],
    ['is nothing for one that is as wanted', wanted(), observed(volume(2)), [], 'ready'],
    ['is to grow one that is too small', wanted(), observed(volume(1)), ['grow'], 'ready'],
    ['is to grow one that a guest has', wanted(), observed(volume(1), { holder: guest }), ['grow'], 'ready'],
    ['is not to shrink one', wanted({ sizeGiB: 1 }), observed(volume(2)), [], 'ready CannotShrink'],
    [
      'is to make and remove snapshots, removals first',
      wanted({ sizeGiB: 3, snapshots: ['b', 'c'] }),
      observed(volume(2, 'a', 'b')),
      ['remove-snapshot a', 'grow', 'make-snapshot c'],
      'ready',
    ],
    [
      'is to change nothing while it is not known who has it',
      wanted({ sizeGiB: 3, snapshots: ['b'] }),
      observed(volume(2, 'a'), { holder: 'unknown' }),
      [],
      'ready ChangeWaits',
    ],
    ['is to keep what is copied', wanted(), observed(volume(2, 'a'), { copied: true }), [], 'ready ChangeWaits'],
    [
      'is to do the rest while it is copied',
      wanted({ sizeGiB: 3, snapshots: ['b'] }),
      observed(volume(2, 'a'), { copied: true }),
      ['grow', 'make-snapshot b'],
      'ready',
    ],
    ['is to remove one', wanted({ want: 'absent' }), observed(volume(2, 'a')), ['remove'], 'ready'],
    ['is to remove what is unfinished', wanted({ want: 'absent' }), observed(unfinished), ['remove'], 'ready'],
    ['is to remove a damaged one', wanted({ want: 'absent' }), observed(damage), ['remove'], 'failed'],
    ['is to say that nothing is left', wanted({ want: 'absent', made: true }), observed(nothing), [], 'absent'],
    [
      'is not to remove one that a guest has',
      wanted({ want: 'absent' }),
      observed(volume(2), { holder: guest }),
      [],
      'ready RemovalWaits',
    ],
    [
      'is not to remove one that a guest may have',
      wanted({ want: 'absent' }),
      observed(volume(2), { holder: 'unknown' }),
      [],
      'ready RemovalWaits',
    ],
    [
      'is not to remove one that is copied',
      wanted({ want: 'absent' }),
      observed(volume(2), { copied: true }),
      [],
      'ready RemovalWaits',
    ],
    [
      'is not to remove a damaged one that a guest has',
      wanted({ want: 'absent' }),
      observed(damage, { holder: guest }),
      [],
      'failed VolumeDamaged',
    ],
    ['is to make nothing that is only kept', wanted({ want: 'kept' }), observed(nothing), [], 'absent'],
    ['is to finish nothing that is only kept', wanted({ want: 'kept' }), observed(unfinished), [], 'absent'],
    [
      'is to change nothing that is only kept',
      wanted({ want: 'kept', sizeGiB: 9, snapshots: ['b'] }),
      observed(volume(2, 'a')),
      [],
      'ready',
    ],
    ['is to say that what is kept is damaged', wanted({ want: 'kept' }), observed(damage), [], 'failed VolumeDamaged'],
  ])('%s', (_what, desired, seen, actions, said) => {
    const plan = planVolume(desired, seen);
    expect(words(plan.actions)).toEqual(actions);
    const { verdict } = plan;
    expect(
      verdict === 'absent' ? 'absent' : `${verdict.state}${verdict.reason === undefined ? '' : ` ${verdict.reason}`}`,
    ).toBe(said);
  });

  const looks = [nothing, unfinished, damage, volume(1), volume(2, 'a'), volume(3, 'a', 'b')];
  const holders = ['none', 'unknown', guest] as const;
  const every = looks.flatMap((look) =>
    holders.flatMap((holder) => [true, false].map((copied) => observed(look, { holder, copied }))),
  );

  it('begins and ends nothing of what is kept, whatever there is', () => {
    for (const seen of every)
      expect(planVolume(wanted({ want: 'kept', snapshots: ['c'], made: true }), seen).actions).toEqual([]);
  });

  it('makes nothing that was made once, whatever there is', () => {
    for (const want of ['present', 'absent', 'kept'] as const)
      for (const seen of every)
        expect(words(planVolume(wanted({ want, made: true }), seen).actions)).not.toContain('make');
  });

  it('removes nothing that is wanted, and nothing that a guest may have', () => {
    for (const seen of every) expect(words(planVolume(wanted(), seen).actions)).not.toContain('remove');
    for (const seen of every.filter(({ holder, look }) => holder !== 'none' && look.found === 'volume'))
      expect(planVolume(wanted({ want: 'absent' }), seen).actions).toEqual([]);
  });
});
