import { describe, expect, it } from 'vitest';
import type { GuestStatus } from '../../api/resources/instance.ts';
import { guestConditions } from './guest-phase.ts';

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
