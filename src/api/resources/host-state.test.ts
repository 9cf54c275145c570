import { expect, it } from 'vitest';
import { type HostDown, hostStateName } from './host-state.ts';

const down: HostDown = { atMs: 0, reason: 'Silent', message: 'silent' };
const ready = { type: 'Ready', status: 'True', reason: 'Registered' };
const not = (reason: string) => ({ type: 'Ready', status: 'False', reason });
const draining = { type: 'Draining', status: 'True', reason: 'Drain' };

it.each([
  ['Ready', [ready], {}],
  ['Paused', [ready], { paused: true }],
  ['Draining', [ready, draining], { paused: true }],
  ['Paused', [ready, { ...draining, status: 'False' }], { paused: true }],
  ['NotReady', [not('AgentStopped'), draining], {}],
  ['NotReady', [not('AgentNotReady')], {}],
  ['Unknown', [not('AgentSilent')], { paused: true }],
  ['Unknown', [not('Restored')], {}],
  ['Unknown', [], {}],
  ['Down', [not('AgentSilent')], { down }],
] as const)('is %s with %o and %o', (state, conditions, more: { paused?: boolean; down?: HostDown }) => {
  const { paused = false, ...status } = more;
  expect(hostStateName({ spec: { paused }, status: { conditions, ...status } })).toBe(state);
});
