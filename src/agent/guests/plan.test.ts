import { describe, expect, it } from 'vitest';
import type { GuestState } from '../../api/agent-protocol.ts';
import { type Action, type Desired, type Observed, planFor } from './plan.ts';

const states: readonly GuestState[] = ['preparing', 'running', 'suspended', 'stopped', 'exited', 'failed'];
const wants: readonly Desired['want'][] = ['running', 'suspended', 'stopped', 'absent'];
const desired = (want: Desired['want']): Desired => ({ want, incarnation: 5 });

describe('the plan', () => {
  // wanted, observed incarnation (5 is the wanted one), observed state, action
  it.each<[Desired['want'], number | undefined, GuestState | undefined, Action]>([
    ['running', undefined, undefined, 'create'],
    ['running', 5, 'preparing', 'create'],
    ['running', 5, 'running', 'none'],
    ['running', 5, 'suspended', 'resume'],
    ['running', 5, 'stopped', 'start'],
    ['running', 5, 'exited', 'none'],
    ['running', 5, 'failed', 'none'],
    ['suspended', undefined, undefined, 'create'],
    ['suspended', 5, 'preparing', 'create'],
    ['suspended', 5, 'running', 'suspend'],
    ['suspended', 5, 'suspended', 'none'],
    ['suspended', 5, 'stopped', 'start'],
    ['suspended', 5, 'exited', 'none'],
    ['suspended', 5, 'failed', 'none'],
    ['stopped', undefined, undefined, 'report-stopped'],
    ['stopped', 5, 'preparing', 'remove'],
    ['stopped', 5, 'running', 'stop'],
    ['stopped', 5, 'suspended', 'stop'],
    ['stopped', 5, 'stopped', 'none'],
    ['stopped', 5, 'exited', 'none'],
    ['stopped', 5, 'failed', 'none'],
    ['kept', undefined, undefined, 'report-absent'],
    ['kept', 4, 'running', 'report-absent'],
    ['kept', 5, 'preparing', 'none'],
    ['kept', 5, 'running', 'none'],
    ['kept', 5, 'suspended', 'none'],
    ['kept', 5, 'stopped', 'none'],
    ['kept', 5, 'exited', 'none'],
    ['kept', 5, 'failed', 'none'],
    ['kept', 6, 'running', 'report-absent'],
    ['absent', undefined, undefined, 'report-absent'],
    ['absent', 5, 'preparing', 'remove'],
    ['absent', 5, 'running', 'remove'],
    ['absent', 5, 'suspended', 'remove'],
    ['absent', 5, 'stopped', 'remove'],
    ['absent', 5, 'exited', 'remove'],
    ['absent', 5, 'failed', 'remove'],
  ])('for a guest wanted %s, with incarnation %s %s here, is %s', (want, incarnation, state, action) => {
    const observed: Observed | undefined =
      incarnation === undefined || state === undefined ? undefined : { incarnation, state };
    expect(planFor(desired(want), observed)).toBe(action);
  });

  it.each<[Observed['state'], boolean, Action]>([
    ['running', false, 'save'],
    ['suspended', false, 'save'],
    ['suspended', true, 'none'],
    ['stopped', false, 'start'],
    ['failed', false, 'none'],
  ])('for a guest wanted suspended to disk that is %s, saved %s, is %s', (state, saved, action) => {
    expect(planFor({ ...desired('suspended'), suspendTo: 'disk' }, { incarnation: 5, state, saved })).toBe(action);
  });

  it('leaves a guest on disk that is to be suspended in memory from now on, and resumes it from there', () => {
    const saved: Observed = { incarnation: 5, state: 'suspended', saved: true };
    expect(planFor(desired('suspended'), saved)).toBe('none');
    expect(planFor(desired('running'), saved)).toBe('resume');
    expect(planFor(desired('stopped'), saved)).toBe('stop');
  });

  it('receives a guest again that has arrived while it ran: its arrival may not have been told', () => {
    expect(planFor(desired('incoming'), { incarnation: 5, state: 'suspended' })).toBe('receive');
  });

  it.each<[Desired['want'], 'under-way' | 'over', Action]>([
    ['running', 'under-way', 'none'],
    ['stopped', 'under-way', 'none'],
    ['running', 'over', 'take-back'],
    ['suspended', 'over', 'take-back'],
    ['stopped', 'over', 'take-back'],
    ['kept', 'over', 'none'],
    ['absent', 'under-way', 'remove'],
    ['absent', 'over', 'remove'],
  ])('for a guest wanted %s that was handed over by a move that is %s, is %s', (want, handedOver, action) => {
    const observed: Observed = { incarnation: 5, state: 'running', handedOver, dead: true, otherSize: true };
    expect(planFor(desired(want), observed)).toBe(action);
  });

  it.each(wants.flatMap((want) => states.map((state) => ({ want, state }))))(
    'removes an older guest first: wanted $want, observed $state',
    ({ want, state }) => expect(planFor(desired(want), { incarnation: 4, state })).toBe('remove'),
  );

  it.each(wants.flatMap((want) => states.map((state) => ({ want, state }))))(
    'never touches a newer guest: wanted $want, observed $state',
    ({ want, state }) =>
      expect(planFor(desired(want), { incarnation: 6, state })).toBe(want === 'absent' ? 'report-absent' : 'none'),
  );

  it.each(states.flatMap((state) => [0, 4, 5, 6].map((incarnation) => ({ state, incarnation }))))(
    'removes a damaged guest only when nothing of the instance is wanted: incarnation $incarnation, $state',
    ({ state, incarnation }) => {
      const planned = wants.map((want) => planFor(desired(want), { incarnation, state, damaged: true }));
      expect(planned).toEqual(['none', 'none', 'none', 'remove']);
    },
  );

  it.each(states)('never touches a guest without an assignment: observed %s', (state) =>
    expect(planFor(undefined, { incarnation: 1, state })).toBe('report-unknown'),
  );

  const withOthers = (state: GuestState, incarnation = 5): Observed => ({ incarnation, state, otherVolumes: true });

  it.each<[Desired['want'], GuestState, Action]>([
    ['running', 'preparing', 'create'],
    ['running', 'running', 'set-volumes'],
    ['running', 'suspended', 'resume'], // it lets go of none before
    ['suspended', 'running', 'suspend'],
    ['suspended', 'suspended', 'set-volumes'],
    ['running', 'stopped', 'set-volumes'],
    ['running', 'exited', 'set-volumes'],
    ['running', 'failed', 'set-volumes'],
    ['stopped', 'preparing', 'remove'],
    ['stopped', 'running', 'stop'],
    ['stopped', 'stopped', 'set-volumes'],
    ['stopped', 'exited', 'set-volumes'],
    ['stopped', 'failed', 'set-volumes'],
  ])('for a guest wanted %s that is %s with other volumes than wanted is %s', (want, state, action) =>
    expect(planFor(desired(want), withOthers(state))).toBe(action),
  );

  it.each(states)(
    'leaves the volumes of a guest alone that is not the wanted one, or only kept, or to go: %s',
    (state) => {
      for (const want of ['running', 'stopped', 'absent'] as const)
        for (const incarnation of [4, 6])
          expect(planFor(desired(want), withOthers(state, incarnation))).not.toBe('set-volumes');
      expect(planFor(desired('kept'), withOthers(state))).toBe('none');
      expect(planFor(desired('absent'), withOthers(state))).toBe('remove');
      expect(planFor(desired('running'), { ...withOthers(state), damaged: true })).toBe('none');
    },
  );

  it('has nothing to do where nothing is wanted and nothing is', () =>
    expect(planFor(undefined, undefined)).toBe('none'));
});

describe('a guest that is to be resized', () => {
  const row = (want: 'running' | 'suspended' | 'stopped' | 'kept', state: Observed['state']) =>
    planFor({ want, incarnation: 1 }, { incarnation: 1, state, otherSize: true });
  it('is stopped, resized and started', () => {
    expect(row('running', 'running')).toBe('stop');
    expect(row('running', 'stopped')).toBe('resize');
    expect(row('stopped', 'stopped')).toBe('resize');
  });
  it('keeps its memory while it is to be suspended, and is left alone while it is only kept', () => {
    expect(row('suspended', 'suspended')).toBe('none');
    expect(row('kept', 'running')).toBe('none');
  });
});
