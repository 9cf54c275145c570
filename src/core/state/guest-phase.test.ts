import { describe, expect, it } from 'vitest';
import type { GuestStatus } from '../../api/resources/instance.ts';
import { testInstance } from '../testing.ts';
import { guestConditions, mayHaveMoved, notFoundAfterRestore, restored } from './guest-phase.ts';

const guest = (change: Partial<GuestStatus>): GuestStatus => ({
  state: 'running',
  ready: false,
  ports: [],
  phases: [],
  ...change,
});
const diskFull = { reason: 'DiskFull', message: 'no room is left below /var/lib/berth' };

describe('the conditions of an instance', () => {
  it('say that a guest boots, and that it has booted', () => {
    expect(guestConditions(guest({}))).toMatchObject([
      { type: 'Running', status: 'True', reason: 'Started' },
      { type: 'Ready', status: 'False', reason: 'Booting' },
    ]);
    expect(guestConditions(guest({ ready: true }))).toMatchObject([
      { type: 'Running', status: 'True' },
      { type: 'Ready', status: 'True', reason: 'Booted' },
    ]);
  });

  it('say what is wrong with a guest that runs', () => {
    expect(guestConditions(guest({ ready: true, ...diskFull }))[0]).toEqual({
      type: 'Running',
      status: 'True',
      ...diskFull,
    });
  });

  it('say why a guest that runs does not get through its boot', () => {
    expect(guestConditions(guest(diskFull))[1]).toEqual({ type: 'Ready', status: 'False', ...diskFull });
  });
});

describe('what is over on its host since a restore', () => {
  it.each([
    ['exclusive, asked after a restore', { exclusive: true }, restored, 'exited', true],
    ['exclusive, not there when it was asked', { exclusive: true }, notFoundAfterRestore, 'stopped', true],
    ['exclusive, and it runs there', { exclusive: true }, restored, 'running', false],
    ['exclusive, and off as asked', { exclusive: true, powerState: 'stopped' }, restored, 'stopped', false],
    ['exclusive, and no restore', { exclusive: true }, 'Started', 'exited', false],
    ['not exclusive', {}, restored, 'exited', false],
  ] as const)('%s', (_, spec, reason, state, expected) => {
    const instance = testInstance('web', spec);
    const running = { type: 'Running', status: 'Unknown', reason, message: '', sinceMs: 0 } as const;
    const known = { ...instance, status: { ...instance.status, conditions: [running] } };
    expect(mayHaveMoved(known, guest({ state }))).toBe(expected);
  });
});
