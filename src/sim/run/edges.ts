// The edges of a run's world: the systems around the fleet that some seeds have. Each has its own source of random numbers, so that all other
// runs are as they were.

import { type Prng, seededPrng } from '../../base/prng.ts';
import type { ServerParts } from '../../server/server.ts';
import type { NodeFacts, TaskMessageFacts } from '../checkers/checker.ts';
import { neverMs, type Scenario } from '../scenario.ts';
import { TaskRequests, tasksUse } from '../task-requests.ts';
import type { MessageEvent } from '../world/broker/broker-parts.ts';
import { SimBroker } from '../world/broker/sim-broker.ts';
import type { WorkloadOptions } from '../workload/workload.ts';
import { FalseMachines, type FalseMachinesOptions } from '../world/false-machines.ts';
import { FalseNodes, type FalseNodesOptions } from '../world/false-nodes.ts';
import { FalseReceivers, type FalseReceiversOptions } from '../world/false-receivers.ts';

export interface EdgesOptions extends Omit<FalseMachinesOptions & FalseNodesOptions & FalseReceiversOptions, 'prng'> {
  readonly seed: number;
  readonly scenario: Pick<Scenario, 'clocks' | 'controlPlanes' | 'faults' | 'preparesSpares'>;
  readonly onTaskMessage: (event: MessageEvent) => void;
  /** None in whole fleets. */
  readonly some: boolean;
}

/** An answer is on its way for so long, besides the poll in which the other system hears of a hold. */
const onTheWayMs = 300;

export class Edges {
  /** Of webhooks: one seed of five has some. */
  readonly receivers: FalseReceivers | undefined;
  /** Of another system: one seed of six has some. */
  readonly nodes: FalseNodes | undefined;
  /** Of spares: one seed of six has some. */
  readonly machines: FalseMachines | undefined;
  /** Of the task queue: one seed of eight has one. */
  readonly taskBroker: SimBroker | undefined;
  readonly taskRequests = new TaskRequests();
  readonly schedule: Required<Pick<ServerParts, 'scheduleTtlMs' | 'scheduleWhenFull'>>;
  readonly #options: EdgesOptions;

  constructor(options: EdgesOptions) {
    this.#options = options;
    if (this.#has('receivers', 5)) this.receivers = new FalseReceivers({ ...options, prng: this.#prng('receivers') });
    if (this.#has('nodes', 6)) this.nodes = new FalseNodes({ ...options, prng: this.#prng('nodes') });
    if (options.scenario.preparesSpares || this.#has('machines', 6))
      this.machines = new FalseMachines({ ...options, prng: this.#prng('machines') });
    if (this.#has('a task queue', 8))
      this.taskBroker = new SimBroker({
        ...options,
        use: tasksUse,
        prng: this.#prng('task broker'),
        onMessage: options.onTaskMessage,
      });
    const prng = this.#prng('schedule');
    this.schedule = {
      scheduleTtlMs: 12_000 + prng.below(26_000),
      scheduleWhenFull: prng.chance(3, 4) ? 'fail' : 'wait',
    };
  }

  get nodeFacts(): NodeFacts | undefined {
    const { nodes } = this;
    return nodes && { node: (name) => nodes.node(name), names: nodes.names, isExact: this.#clocksAgree(nodes) };
  }

  get taskMessages(): TaskMessageFacts | undefined {
    return this.taskBroker && { broker: this.taskBroker, requests: this.taskRequests };
  }

  /** Who use them. */
  tenants(): Pick<WorkloadOptions, 'claimantPrng' | 'news' | 'outside' | 'placementPrng' | 'spares' | 'tasks'> {
    const { receivers, nodes, machines, taskBroker: broker, taskRequests: requests } = this;
    return {
      ...(receivers ? { news: { prng: this.#prng('news'), receivers } } : {}),
      ...(nodes ? { outside: { prng: this.#prng('stocker'), nodes } } : {}),
      ...(nodes || this.#has('a placer', 8) ? { placementPrng: this.#prng('placer') } : {}),
      ...(this.#has('a claimant', 6) ? { claimantPrng: this.#prng('claimant') } : {}),
      ...(machines ? { spares: { prng: this.#prng('spare tenant'), machines } } : {}),
      ...(broker ? { tasks: { prng: this.#prng('task publisher'), broker, requests } } : {}),
    };
  }

  #prng(of: string): Prng {
    return seededPrng(this.#options.seed, of);
  }

  #has(what: string, oneOf: number): boolean {
    return this.#options.some && this.#prng(`has ${what}`).chance(1, oneOf);
  }

  /** So that no server takes a hold for an old one which another has just made. */
  #clocksAgree({ intervalMs }: FalseNodes): boolean {
    const { clocks, controlPlanes, faults } = this.#options.scenario;
    const servers = clocks.slice(0, controlPlanes);
    const offsets = servers.map(({ wallOffsetMs = 0 }) => wallOffsetMs);
    return (
      servers.every(({ rate = 1 }) => rate === 1) &&
      Math.max(...offsets) - Math.min(...offsets) + onTheWayMs < intervalMs &&
      !faults.some(({ kind, everyMsMean }) => kind === 'server-clock-jump' && everyMsMean !== neverMs)
    );
  }
}
