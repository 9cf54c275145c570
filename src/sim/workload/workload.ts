// The workload of a run: tenants, an operator and watchers, who use the real client. They note what they asked and what was answered;
// only watchers judge anything.

import type { Prng } from '../../base/prng.ts';
import type { Principal } from '../../core/access/principal.ts';
import { watchedKinds } from '../checkers/watch.ts';
import { keyLabel } from '../intents.ts';
import { drawPlacement } from '../rules.ts';
import { Caller, join } from './caller.ts';
import { Claimant } from './claimant.ts';
import { drawInstance } from './draw-instance.ts';
import { DrainTenant } from './drain-tenant.ts';
import { InventoryKeeper, type InventoryKeeperOptions } from './inventory-keeper.ts';
import { JobTenant } from './job-tenant.ts';
import { LifeTenant } from './life-tenant.ts';
import { Mover } from './mover.ts';
import { NewsTenant, type NewsTenantOptions } from './news-tenant.ts';
import { Operator } from './operator.ts';
import type { WorkloadParts } from './parts.ts';
import { PlacementTenant } from './placement-tenant.ts';
import { RebalanceKeeper } from './rebalance-keeper.ts';
import { Rebalancer } from './rebalancer.ts';
import { ReplicaTenant } from './replica-tenant.ts';
import { RequestPublisher, type RequestPublisherOptions } from './request-publisher.ts';
import { Resizer } from './resizer.ts';
import { SpareTenant, type SpareTenantOptions } from './spare-tenant.ts';
import { TaskPublisher, type TaskPublisherOptions } from './task-publisher.ts';
import { UpdatingTenant } from './updating-tenant.ts';
import { TaskTenant } from './task-tenant.ts';
import { Tenant } from './tenant.ts';
import { VolumeTenant } from './volume-tenant.ts';
import { WalledTenant, walledProject } from './walled-tenant.ts';
import { WarmJobTenant } from './warm-job-tenant.ts';
import { WarmTenant } from './warm-tenant.ts';
import { Watcher } from './watcher.ts';

export interface WorkloadOptions extends Omit<WorkloadParts, 'over' | 'budget'> {
  readonly prng: Prng;
  /** Of a tenant of volumes; absent: there is none. It has its own source of random numbers, so that all else is the same either way. */
  readonly volumePrng?: Prng;
  /** The same for a tenant and a watcher who have tokens of one project. */
  readonly walledPrng?: Prng;
  /** The same for a tenant of jobs. */
  readonly jobPrng?: Prng;
  /** The same for a publisher of JobRequests. */
  readonly messages?: Omit<RequestPublisherOptions, 'parts'>;
  /** The same for a tenant of the placement service. */
  readonly placementPrng?: Prng;
  /** The same for a client of the Placement API. */
  readonly claimantPrng?: Prng;
  /** The same for a tenant of workloads. */
  readonly replicaPrng?: Prng;
  /** The same for tenants that update workloads all the time. */
  readonly updatesPrng?: Prng;
  /** The same for an operator who moves instances. */
  readonly moverPrng?: Prng;
  /** The same for a user who resizes instances. */
  readonly resizerPrng?: Prng;
  /** The same for an operator who empties little used hosts. */
  readonly rebalancerPrng?: Prng;
  /** The same for the keeper of a schedule that does so. */
  readonly rebalanceKeeperPrng?: Prng;
  /** The same for a tenant of instances that expire or are protected. */
  readonly lifePrng?: Prng;
  /** The same for a tenant of a warm pool, and of one for jobs. */
  readonly warmPrng?: Prng;
  /** The same for an operator who drains hosts. */
  readonly drains?: { readonly prng: Prng; readonly hosts: readonly string[] };
  /** The same for the keeper of an inventory. */
  readonly outside?: Omit<InventoryKeeperOptions, 'caller'> & { readonly prng: Prng };
  /** The same for a publisher of requests to /schedule. */
  readonly tasks?: Omit<TaskPublisherOptions, 'caller'> & { readonly prng: Prng };
  /** The same for a tenant of spares. */
  readonly spares?: Omit<SpareTenantOptions, 'caller'> & { readonly prng: Prng };
  /** The same for a tenant of webhooks. */
  readonly news?: Omit<NewsTenantOptions, 'caller'> & { readonly prng: Prng };
}

/** The first crowd has this size, whatever the tenants have created by then. */
const firstCrowd = 5;

const updatingTenants = 3;

export class Workload {
  readonly operator: Operator;
  readonly #options: WorkloadOptions;
  readonly #parts: WorkloadParts;
  readonly #over = new AbortController();
  readonly #running: Promise<void>[] = [];
  #crowds = 0;
  #walled: { readonly tenant: Principal; readonly watcher: Principal } | undefined;

  constructor(options: WorkloadOptions) {
    this.#options = options;
    this.#parts = { ...options, over: this.#over.signal, budget: { left: options.scenario.instancesMax } };
    this.operator = new Operator(this.#callerOf('operator', options.prng.split()));
  }

  /** Before anybody works. */
  async prepare(): Promise<void> {
    await this.operator.prepare();
    if (this.#options.walledPrng === undefined) return;
    const issue = (name: string, role: string): Promise<Principal> =>
      this.operator.issueToken(name, { role, project: walledProject });
    this.#walled = { tenant: await issue('walled-1', 'user'), watcher: await issue('watcher-3', 'viewer') };
  }

  start(): void {
    const { scenario, prng, volumePrng, jobPrng, messages } = this.#options;
    for (let i = 1; i <= scenario.tenants; i++) {
      const project = scenario.projects[i % scenario.projects.length] ?? 'default';
      this.#running.push(new Tenant(this.#callerOf(`tenant-${i}`, prng.split()), project).run());
    }
    const other = watchedKinds[prng.below(watchedKinds.length)] ?? 'instance';
    for (const [name, kind] of [['watcher-1', 'instance'] as const, ['watcher-2', other] as const]) {
      const watcher = new Watcher(this.#parts, { line: join(this.#parts, name), kind, prng: prng.split() });
      this.#running.push(watcher.run());
    }
    this.#running.push(new TaskTenant(this.#callerOf('holder-1', prng.split())).run());
    if (volumePrng) this.#running.push(new VolumeTenant(this.#callerOf('keeper-1', volumePrng)).run());
    if (this.#options.walledPrng) this.#startWalled(this.#options.walledPrng);
    if (messages) this.#running.push(new RequestPublisher({ ...messages, parts: this.#parts }).run());
    this.#startEdges();
    const { replicaPrng, updatesPrng, moverPrng, drains } = this.#options;
    if (moverPrng) this.#running.push(new Mover(this.#callerOf('mover-1', moverPrng)).run());
    if (drains) this.#running.push(new DrainTenant(this.#callerOf('drainer-1', drains.prng), drains.hosts).run());
    if (replicaPrng) this.#running.push(new ReplicaTenant(this.#callerOf('keeper-2', replicaPrng)).run());
    if (updatesPrng)
      for (let i = 1; i <= updatingTenants; i++)
        this.#running.push(new UpdatingTenant(this.#callerOf(`roller-${i}`, updatesPrng.split())).run());
    if (updatesPrng) this.#running.push(new WarmTenant(this.#callerOf('warmer-1', updatesPrng.split())).run());
    if (jobPrng) this.#running.push(new JobTenant(this.#callerOf('runner-1', jobPrng)).run());
    this.#startLater();
  }

  /** Starts no new work. Resolves when every tenant has all its answers. */
  async end(): Promise<void> {
    this.#over.abort();
    await Promise.all(this.#running);
  }

  /** Creates many instances at once, for a new tenant, and returns how many. */
  burst(count: number): number {
    const { budget } = this.#parts;
    const size = Math.min(count, Math.max(this.#crowds === 0 ? firstCrowd : 0, budget.left));
    if (size <= 0 || this.#over.signal.aborted) return 0;
    budget.left -= size;
    this.#crowds += 1;
    this.#running.push(this.#crowd(`crowd-${this.#crowds}`, size));
    return size;
  }

  /** Those that came after all others. */
  #startLater(): void {
    const { resizerPrng, rebalancerPrng, rebalanceKeeperPrng, warmPrng, lifePrng } = this.#options;
    if (lifePrng) this.#running.push(new LifeTenant(this.#callerOf('mayfly-1', lifePrng)).run());
    if (resizerPrng) this.#running.push(new Resizer(this.#callerOf('sizer-1', resizerPrng)).run());
    if (rebalancerPrng) this.#running.push(new Rebalancer(this.#callerOf('packer-1', rebalancerPrng)).run());
    if (rebalanceKeeperPrng)
      this.#running.push(new RebalanceKeeper(this.#callerOf('packer-2', rebalanceKeeperPrng)).run());
    if (!warmPrng) return;
    this.#running.push(new WarmTenant(this.#callerOf('warmer-2', warmPrng.split())).run());
    this.#running.push(new WarmJobTenant(this.#callerOf('warmer-3', warmPrng.split())).run());
  }

  /** Those that speak for other systems. */
  #startEdges(): void {
    const { claimantPrng, news, outside, placementPrng, spares, tasks } = this.#options;
    if (news) this.#running.push(new NewsTenant({ ...news, caller: this.#callerOf('reader-1', news.prng) }).run());
    if (outside)
      this.#running.push(new InventoryKeeper({ ...outside, caller: this.#callerOf('stocker-1', outside.prng) }).run());
    if (tasks)
      this.#running.push(new TaskPublisher({ ...tasks, caller: this.#callerOf('sender-1', tasks.prng) }).run());
    if (spares)
      this.#running.push(new SpareTenant({ ...spares, caller: this.#callerOf('sparer-1', spares.prng) }).run());
    if (claimantPrng) this.#running.push(new Claimant(this.#callerOf('claimant-1', claimantPrng)).run());
    if (placementPrng) this.#running.push(new PlacementTenant(this.#callerOf('placer-1', placementPrng)).run());
  }

  #startWalled(prng: Prng): void {
    const walled = this.#walled;
    if (!walled) return;
    const parts = this.#parts;
    const caller = new Caller(parts, join(parts, 'walled-1', walled.tenant), prng.split());
    const line = join(parts, 'watcher-3', walled.watcher);
    const kind = prng.chance(1, 3) ? 'event' : 'instance';
    const watcher = new Watcher(parts, { line, kind, prng: prng.split(), project: walledProject });
    this.#running.push(new WalledTenant(caller).run(), watcher.run());
  }

  async #crowd(name: string, size: number): Promise<void> {
    const prng = this.#options.prng.split();
    const line = join(this.#parts, name);
    const createOne = (_: unknown, index: number) => {
      const key = `${name}-${index + 1}`;
      const metadata = { name: key, labels: { [keyLabel]: key, tenant: name } };
      const spec = { ...drawInstance(prng), placement: drawPlacement(prng, name) };
      return new Caller(this.#parts, line, prng.split()).createInstance({ key, body: { metadata, spec } });
    };
    await Promise.all(Array.from({ length: size }, createOne));
  }

  #callerOf(name: string, prng: Prng): Caller {
    return new Caller(this.#parts, join(this.#parts, name), prng);
  }
}
