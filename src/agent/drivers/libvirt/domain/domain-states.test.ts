import { describe, expect, it } from 'vitest';
import { pausedReasons, standingOfDomain } from './domain-states.ts';
import { domainStates } from '../libvirt.ts';

describe('a state of a domain', () => {
  it.each([
    ['none', 0, { guest: 'running' }],
    ['running', 1, { guest: 'running' }],
    ['blocked', 0, { guest: 'running' }],
    ['shutdown', 1, { guest: 'running' }],
    ['shutoff', 1, { guest: 'shutoff', why: 'shutdown' }],
    ['shutoff', 3, { guest: 'shutoff', why: 'crashed' }],
    ['shutoff', 99, { guest: 'shutoff', why: 'unknown' }],
    ['crashed', 1, { guest: 'ended', how: 'guest-panic' }],
    ['suspended', 0, { guest: 'running', trouble: { code: 'GuestAsleep' } }],
    ['paused', 0, { guest: 'unexplained' }],
    ['paused', 1, { guest: 'suspended' }],
    ['paused', 5, { guest: 'waiting-for-disk' }],
    ['paused', 6, { guest: 'halted', reason: { code: 'GuestWatchdog' } }],
    ['paused', 9, { guest: 'running', trouble: { code: 'HeldByHypervisor' } }],
    ['paused', 10, { guest: 'ended', how: 'guest-panic' }],
    ['paused', 11, { guest: 'running' }],
    ['paused', 99, { guest: 'running', trouble: { code: 'HeldByHypervisor' } }],
  ] as const)('%s, for reason %s, is understood', (state, reason, standing) => {
    expect(standingOfDomain({ state, reason })).toMatchObject(standing);
  });

  it('is understood whatever it is', () => {
    for (const state of domainStates) {
      for (let reason = 0; reason <= pausedReasons.length; reason++)
        expect(standingOfDomain({ state, reason }), `${state} ${reason}`).toHaveProperty('guest');
    }
  });
});
