// The metrics under the names of the orchestrator that Berth takes the place of, for boards and alerts that exist. Behind a setting: they
// have a time series for each host.

import { Counter, Gauge, type Registry } from 'prom-client';
import { hostStateName } from '../../api/resources/host-state.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { Activity } from './activity.ts';
import type { Totals } from './fleet.ts';

interface SourceParts {
  readonly snapshot: Snapshot;
  readonly totals: Totals;
  readonly activity: Activity;
}

export function measureBySourceNames(registry: Registry, { snapshot, totals, activity }: SourceParts): void {
  registry.registerMetric(
    new Counter({
      name: 'orchard_scheduler_loop_iteration_total',
      help: 'Keys that the placement controller looked at',
      registers: [],
      async collect() {
        this.reset();
        this.inc(await activity.reconciles('placement'));
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: 'orchard_workers',
      help: '1 for the state that a host is in',
      labelNames: ['worker_name', 'status'],
      registers: [],
      collect() {
        this.reset();
        for (const { value } of snapshot.list('host')) {
          const state = hostStateName(value);
          const online = state !== 'Unknown' && state !== 'Down';
          this.set({ worker_name: value.metadata.name, status: online ? 'online' : 'offline' }, 1);
        }
      },
    }),
  );
  registry.registerMetric(
    new Gauge({
      name: 'orchard_vms',
      help: 'Instances by their state',
      labelNames: ['status'],
      registers: [],
      collect() {
        const { instances } = totals.read();
        let rest = 0;
        for (const [phase, count] of instances) if (phase !== 'Running' && phase !== 'Failed') rest += count;
        this.set({ status: 'pending' }, rest);
        this.set({ status: 'running' }, instances.get('Running') ?? 0);
        this.set({ status: 'failed' }, instances.get('Failed') ?? 0);
      },
    }),
  );
  registry.registerMetric(activity.sourceScheduling);
}
