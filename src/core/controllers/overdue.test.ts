import { describe, expect, it } from 'vitest';
import type { GuestStatus } from '../../api/agent-protocol.ts';
import { deleteInstance } from '../operations/instance.ts';
import { applyReport } from '../operations/report.ts';
import { conditionOf } from '../state/conditions.ts';
import { commitPlan, testCache, testContext, testGuest, testHost, testImage, testInstance } from '../testing.ts';
import { overdue } from './overdue.ts';
import { placement } from './placement.ts';

const key = 'instances/default/web';
const placedMs = 1_000_000;
const minute = 60_000;
let ids = 0;
const at = (nowMs: number) => testContext({ nowMs, newId: (prefix) => `${prefix}_${++ids}` });

function placed() {
  const cache = testCache([testImage(), ...testHost('h1'), testInstance('web')]);
  commitPlan(cache, placement.reconcile(cache, key, at(placedMs)));
  const web = () => cache.get('instance', key)?.value ?? expect.unreachable();
  let sequence = 0;
  return {
    cache,
    web,
    report(guest: Partial<GuestStatus>, ms: number): void {
      const report = {
        ...{ instanceId: web().metadata.id, incarnation: 1, sequence: ++sequence, observedGeneration: 1 },
        guest: testGuest(guest),
      };
      commitPlan(cache, applyReport(cache, { host: 'h1', epoch: 1, report }, at(ms)).plan);
    },
    look: (ms: number) => {
      const plan = overdue.reconcile(cache, key, at(ms));
      commitPlan(cache, plan);
      return plan;
    },
    told: () => conditionOf(web().status.conditions, 'Progressing')?.message,
  };
}

describe('an instance on its way', () => {
  it('that its host does not begin has one event after two minutes', () => {
    const { look, told, cache } = placed();
    expect(look(placedMs + minute)).toEqual({ changes: [], requeueAfterMs: minute });
    look(placedMs + 2 * minute);
    expect(told()).toMatch(/^h1 has not begun with it for 2 min; see "berth host show h1"/);
    expect(look(placedMs + 10 * minute).changes).toEqual([]);
    expect([...cache.list('event')].filter(({ value }) => value.spec.reason === 'Overdue')).toHaveLength(1);
  });

  it('may prepare for half an hour', () => {
    const { look, told, report } = placed();
    report({ state: 'preparing' }, placedMs + minute);
    look(placedMs + 29 * minute);
    expect(told()).toBeUndefined();
    look(placedMs + 30 * minute);
    expect(told()).toMatch(/^h1 has not started its guest for 30 min/);
  });

  it('that moves on is not overdue any more', () => {
    const { look, told, report, web } = placed();
    look(placedMs + 2 * minute);
    report({ state: 'running' }, placedMs + 3 * minute);
    look(placedMs + 3 * minute);
    expect(told()).toBe('it is Running');
    expect(web().status.phase).toBe('Running');
    expect(look(placedMs + 4 * minute).changes).toEqual([]);
  });

  it('costs no write when all goes well', () => {
    const { look, report } = placed();
    report({ state: 'running' }, placedMs + minute);
    expect(look(placedMs + minute)).toEqual({ changes: [] });
  });

  it('that is deleted names the hosts that hold it, after its grace and five minutes', () => {
    const { cache, look, told } = placed();
    commitPlan(cache, deleteInstance(cache, { project: 'default', name: 'web' }, at(placedMs)).plan);
    look(placedMs + 5 * minute);
    expect(told()).toBeUndefined();
    look(placedMs + 5 * minute + 10_000);
    expect(told()).toMatch(/^h1 has not removed it for 5 min; .*"berth host rm --force h1"$/);
  });
});
