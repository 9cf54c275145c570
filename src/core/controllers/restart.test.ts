// Restarts of an instance whose guest ends again and again. All that is known of earlier restarts is in its record, so nothing here
// outlives a decision but the store.

import { describe, expect, it } from 'vitest';
import type { GuestStatus } from '../../api/agent-protocol.ts';
import type { Instance, InstanceSpec } from '../../api/resources/instance.ts';
import { replaceInstance } from '../operations/instance.ts';
import { applyReport } from '../operations/report.ts';
import type { Cache } from '../state/cache.ts';
import { commitPlan, testCache, testContext, testGuest, testHost, testImage, testInstance } from '../testing.ts';
import { placement } from './placement.ts';
import { powerOn } from './power-on.ts';
import { restart } from './restart.ts';

const key = 'instances/default/web';
let ids = 0;

class Life {
  nowMs = 1_000_000;
  readonly cache: Cache;
  #sequence = 0;

  constructor(spec: Partial<InstanceSpec>) {
    this.cache = testCache([testImage(), ...testHost('h1'), testInstance('web', spec)], () => this.nowMs);
    this.#bring();
  }

  get web(): Instance {
    return this.cache.get('instance', key)?.value ?? expect.unreachable();
  }

  get #ctx() {
    const { nowMs } = this;
    return testContext({ nowMs, monotonicMs: nowMs, newId: (prefix) => `${prefix}_${++ids}` });
  }

  /** The guest runs for so long, and ends. */
  run(ms: number, state: 'failed' | 'exited' = 'failed'): void {
    const startedAtMs = this.nowMs;
    const phases = [{ name: 'start', startedAtMs, durationMs: 1 }];
    this.#report({ state: 'running', startedAtMs, phases });
    this.nowMs += ms;
    this.#report({ state, startedAtMs, phases, message: 'that was it' });
  }

  /** How long it waits until the next restart, which then is made; undefined: there is none. */
  restart(): number | undefined {
    const beganMs = this.nowMs;
    for (;;) {
      const plan = restart.reconcile(this.cache, key, this.#ctx);
      commitPlan(this.cache, plan);
      if (plan.requeueAfterMs !== undefined) this.nowMs += plan.requeueAfterMs;
      else if (this.web.status.phase === 'Failed' || this.web.status.phase === 'Exited') return undefined;
      else break;
    }
    this.#bring();
    return this.nowMs - beganMs;
  }

  change(spec: Partial<InstanceSpec>): void {
    const { metadata, spec: before } = this.web;
    const input = { project: 'default', name: 'web', labels: metadata.labels, spec: { ...before, ...spec } };
    commitPlan(this.cache, replaceInstance(this.cache, input, this.#ctx).plan);
    this.#bring();
  }

  #bring(): void {
    for (const controller of [placement, powerOn])
      commitPlan(this.cache, controller.reconcile(this.cache, key, this.#ctx));
  }

  #report(guest: Partial<GuestStatus>): void {
    const { metadata, status } = this.web;
    const { incarnation } = status;
    const sent = {
      ...{ instanceId: metadata.id, incarnation, sequence: ++this.#sequence, observedGeneration: metadata.generation },
      guest: testGuest(guest),
    };
    commitPlan(this.cache, applyReport(this.cache, { host: 'h1', epoch: 1, report: sent }, this.#ctx).plan);
  }
}

/** The waits before the first restarts of a guest that fails at once. */
function waits(spec: Partial<InstanceSpec>, count: number): (number | undefined)[] {
  const life = new Life(spec);
  return Array.from({ length: count }, () => {
    life.run(0);
    return life.restart();
  });
}

const onFailure = { restartPolicy: 'OnFailure' } as const;
const always = { restartPolicy: 'Always' } as const;

describe('restarts in a row', () => {
  const rows: [name: string, spec: Partial<InstanceSpec>, waits: (number | undefined)[]][] = [
    [
      'wait twice as long each time, five minutes at most',
      onFailure,
      [15_000, 30_000, 60_000, 120_000, 240_000, 300_000, 300_000],
    ],
    ['begin with the delay of the instance', { ...onFailure, restart: { delayMs: 1000 } }, [1000, 2000, 4000]],
    ['end with its maximum', { ...onFailure, restart: { delayMs: 1000, delayMsMax: 3000 } }, [1000, 2000, 3000, 3000]],
    ['never fall below the first', { ...onFailure, restart: { delayMs: 9000, delayMsMax: 1000 } }, [9000, 9000]],
    ['come at once without a delay', { ...onFailure, restart: { delayMs: 0 } }, [0, 0, 0]],
    ['end with the limit', { ...onFailure, restart: { delayMs: 0, limit: 2 } }, [0, 0, undefined]],
    ['are none with a limit of 0', { ...onFailure, restart: { limit: 0 } }, [undefined]],
    ['are none under Never', {}, [undefined]],
  ];
  it.each(rows)('%s', (_, spec, expected) => {
    expect(waits(spec, expected.length)).toEqual(expected);
  });

  it('begin again after a guest that ran for long', () => {
    const life = new Life(onFailure);
    for (const ms of [0, 0, 0]) {
      life.run(ms);
      life.restart();
    }
    life.run(599_999);
    expect(life.restart()).toBe(120_000);
    life.run(600_000);
    expect(life.restart()).toBe(15_000);
    expect(life.web.status).toMatchObject({ restartCount: 5, restarts: { inRow: 1 } });
  });

  it('begin again when its owner starts it, and say that they had ended', () => {
    const life = new Life({ ...onFailure, restart: { delayMs: 0, limit: 1 } });
    life.run(0);
    life.restart();
    life.run(0);
    expect(life.restart()).toBeUndefined();
    expect(life.web.status).toMatchObject({ phase: 'Failed', restarts: { inRow: 1, exhausted: true } });
    expect(life.restart()).toBeUndefined();
    const told = [...life.cache.list('event')].filter(({ value }) => value.spec.reason === 'RestartLimit');
    expect(told).toHaveLength(1);
    life.change({ starts: 1 });
    expect(life.web.status).not.toHaveProperty('restarts');
    life.run(0);
    expect(life.restart()).toBe(0);
  });
});

describe('an instance whose guest ended by itself', () => {
  it('is restarted under Always only', () => {
    for (const [spec, restarts] of [
      [always, 1],
      [onFailure, 0],
    ] as const) {
      const life = new Life(spec);
      life.run(1000, 'exited');
      life.restart();
      expect(life.web.status.restartCount).toBe(restarts);
      expect(life.web.status.phase).toBe(restarts === 1 ? 'Scheduled' : 'Exited');
    }
  });

  it('stays ended when it was stopped meanwhile', () => {
    const life = new Life(always);
    life.run(1000, 'exited');
    life.change({ powerState: 'stopped' });
    expect(life.restart()).toBeUndefined();
  });
});

describe('a restart that keeps the disk', () => {
  it('is another run of the same incarnation on the same host, again and again', () => {
    const life = new Life({ ...always, diskGiB: 5, restart: { delayMs: 0, disk: 'kept' } });
    const orders: unknown[] = [];
    for (const state of ['exited', 'failed', 'exited'] as const) {
      life.run(1000, state);
      expect(life.restart()).toBe(0);
      expect(life.web.status).toMatchObject({ phase: 'Stopped', host: 'h1', incarnation: 1 });
      orders.push(life.web.status.startAgain?.order);
    }
    expect(orders).toEqual([1, 2, 3]);
    life.change({ starts: 1 });
    life.run(1000, 'failed');
    life.change({ starts: 2 });
    expect(life.web.status.startAgain?.order).toBe(5);
  });

  it('is one with a fresh disk where there is none to keep', () => {
    const life = new Life({ ...always, restart: { delayMs: 0, disk: 'kept' } });
    life.run(1000, 'failed');
    const held = [...life.cache.list('allocation')].map(({ key: allocation, revision }) => ({
      key: allocation,
      revision,
    }));
    commitPlan(life.cache, {
      changes: held.map(({ key: allocation, revision }) => ({ key: allocation, ifRevision: revision, value: null })),
    });
    life.restart();
    expect(life.web.status).toMatchObject({ restartCount: 1, incarnation: 2 });
  });
});
