import { describe, expect, it } from 'vitest';
import type { Workload } from '../../api/resources/workload.ts';
import { available } from './workload-wait.ts';

interface Given {
  readonly spec?: Partial<Workload['spec']>;
  readonly status?: Partial<Workload['status']>;
  readonly condition?: Partial<Workload['status']['conditions'][number]>;
}

/** Three copies of revision 2, all available. */
function workload({ spec, status, condition }: Given): Workload {
  const said = { type: 'Available', status: 'True', reason: 'Available', message: 'said', sinceMs: 0, ...condition };
  return {
    metadata: {},
    spec: { replicas: 3, paused: false, ...spec },
    status: { revision: 2, stableRevision: 2, wanted: 3, conditions: [said], ...status },
  } as unknown as Workload; // what the judge reads of one
}

const updating = { status: 'False', reason: 'Updating', message: '1 of 3 copies are updated' } as const;

describe('who waits for revision 2 of a workload', () => {
  it.each<[string, Given, 'done' | 'waiting' | 'failed']>([
    ['is done when all copies are available', {}, 'done'],
    ['is done with a later revision', { status: { revision: 3, stableRevision: 3 } }, 'done'],
    ['waits while copies are updated', { condition: updating, status: { stableRevision: 1 } }, 'waiting'],
    ['waits until the new revision was looked at', { status: { stableRevision: 1 } }, 'waiting'],
    ['waits until the new number was looked at', { spec: { replicas: 5 } }, 'waiting'],
    ['waits for no number with a copy per host', { spec: { replicas: 1, perHost: true } }, 'done'],
    ['is done when no copies are wanted', { spec: { replicas: 0 }, status: { wanted: 0, stableRevision: 1 } }, 'done'],
    ['does not wait for an update that is paused', { spec: { paused: true }, condition: updating }, 'failed'],
    ['is done with a paused workload without an update', { spec: { paused: true } }, 'done'],
    ['does not wait for one that stalled', { condition: { status: 'False', reason: 'Stalled' } }, 'failed'],
    ['does not wait for a revert', { status: { revision: 3, reverting: true } }, 'failed'],
  ])('%s', (_, given, result) => {
    expect(Object.keys(available('web', 2)(workload(given)))).toEqual([result]);
  });
});
