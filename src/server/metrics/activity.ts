// Activity: what this control plane has done since its start, for the metrics. The parts count here as they work; nothing is read back
// for a decision.

import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** What came of one reconcile: a Plan to commit, nothing to do, or a failure of the controller. */
export type Reconciled = 'plan' | 'nothing' | 'error';

const requestBuckets = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10];
const commitBuckets = [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5];
const batchBuckets = [1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000];
/** From milliseconds to hours: an instance may wait for room for long. */
const schedulingBuckets = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 15, 60, 300, 1_800, 7_200];

export class Activity {
  readonly #reconciles = new Counter({
    name: 'berth_reconciles_total',
    help: 'Keys that controllers looked at, by controller and result',
    labelNames: ['controller', 'result'],
    registers: [],
  });
  readonly #commits = new Histogram({
    name: 'berth_store_commit_seconds',
    help: 'Time of a commit in the store, by outcome',
    labelNames: ['outcome'],
    buckets: commitBuckets,
    registers: [],
  });
  readonly #batches = new Histogram({
    name: 'berth_store_commit_plans',
    help: 'Plans that shared a commit',
    buckets: batchBuckets,
    registers: [],
  });
  readonly #requests = new Histogram({
    name: 'berth_http_request_seconds',
    help: 'Time from a request until its answer is written, by method, route and status; streams are not counted',
    labelNames: ['method', 'route', 'status'],
    buckets: requestBuckets,
    registers: [],
  });
  readonly #scheduling = new Histogram({
    name: 'berth_scheduling_seconds',
    help: 'Time from the creation of an instance until it had its first host, of those that this server placed',
    buckets: schedulingBuckets,
    registers: [],
  });
  /** The same under the name of the orchestrator before; told only where it is asked for. */
  readonly sourceScheduling = new Histogram({
    name: 'org_cirruslabs_orchard_controller_scheduling_time',
    help: 'Time from the creation of an instance until it had its first host, in seconds',
    buckets: schedulingBuckets,
    registers: [],
  });
  readonly #placements = new Counter({
    name: 'berth_placements_total',
    help: 'Instances that this server gave a host, again after a loss included',
    registers: [],
  });

  register(registry: Registry): void {
    registry.registerMetric(this.#reconciles);
    registry.registerMetric(this.#commits);
    registry.registerMetric(this.#batches);
    registry.registerMetric(this.#requests);
    registry.registerMetric(this.#scheduling);
    registry.registerMetric(this.#placements);
  }

  reconciled(controller: string, result: Reconciled): void {
    this.#reconciles.inc({ controller, result });
  }

  /** `tookMs` in the store. */
  committed({
    outcome,
    plans,
    tookMs,
  }: {
    outcome: 'written' | 'refused' | 'failed';
    plans: number;
    tookMs: number;
  }): void {
    this.#commits.observe({ outcome }, tookMs / 1_000);
    this.#batches.observe(plans);
  }

  answered({ method, route, status, tookMs }: { method: string; route: string; status: number; tookMs: number }): void {
    this.#requests.observe({ method, route, status: String(status) }, tookMs / 1_000);
  }

  /** An instance got a host `afterMs` after its creation; undefined: not its first. */
  placed(afterMs: number | undefined): void {
    if (afterMs !== undefined) {
      this.#scheduling.observe(afterMs / 1_000);
      this.sourceScheduling.observe(afterMs / 1_000);
    }
    this.#placements.inc();
  }

  /** The sum of the reconciles of one controller, for the names of another system. */
  async reconciles(controller: string): Promise<number> {
    const { values } = await this.#reconciles.get();
    return values.reduce((sum, { labels, value }) => sum + (labels.controller === controller ? value : 0), 0);
  }
}

/** How many watches are open, by kind of resource. */
export function measureWatches(registry: Registry, counts: () => ReadonlyMap<string, number>): void {
  registry.registerMetric(
    new Gauge({
      name: 'berth_watches',
      help: 'Watches of clients that follow the store, by kind',
      labelNames: ['kind'],
      registers: [],
      collect() {
        this.reset();
        for (const [kind, count] of counts()) this.set({ kind }, count);
      },
    }),
  );
}
