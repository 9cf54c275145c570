// The verdict on a run: asks the checkers after every commit, request and change of a guest, and keeps the first violation.
//
//   restore:  not ── the store closes ──▶ now ── it opens ──▶ done      each state has its own checkers; broken off, `now` begins again

import { Reports } from '../../api/agent-protocol.ts';
import { matches } from '../../api/parse.ts';
import type { FakeWorld } from '../../agent/drivers/fake/world.ts';
import type { Cache } from '../../core/state/cache.ts';
import type { Policy } from '../../core/state/context.ts';
import { keys } from '../../core/state/keys.ts';
import type { Tally } from '../batch/tally.ts';
import type {
  Cached,
  Checker,
  MachineFacts,
  MessageFacts,
  NodeFacts,
  ReceiverFacts,
  TaskMessageFacts,
  ServerLife,
} from '../checkers/checker.ts';
import { checkers as checkerFactories } from '../checkers/registry.ts';
import type { createExcused } from '../excused.ts';
import type { Commit, History } from '../history.ts';
import type { Intents } from '../intents.ts';
import type { MessageEvent } from '../world/broker/broker-parts.ts';
import type { Delivery } from '../world/false-receivers.ts';
import type { SeenRequest } from '../world/peer.ts';
import type { Epilogue } from '../world/restore-epilogue.ts';
import type { DeafTimes } from './deaf-times.ts';
import { Progress } from './progress.ts';
import { summaryOf } from './summary.ts';
import type { Trace } from './trace.ts';

export interface Violation {
  /** Number of the invariant in docs/ARCHITECTURE.md; 0: one without a number, or the program itself failed. */
  readonly invariant: number;
  readonly message: string;
  readonly atMs: number;
}

/** Why the cluster is not at rest. */
export type Unrest = Omit<Violation, 'atMs'>;

export interface VerdictOptions {
  readonly nowMs: () => number;
  readonly trace: Trace;
  readonly tally: Tally;
  readonly history: History;
  readonly intents: Intents;
  readonly policy: Policy;
  readonly guests: FakeWorld;
  readonly excused: ReturnType<typeof createExcused>;
  /** Hosts that lost their power for good. */
  readonly dead: ReadonlySet<string>;
  readonly deafTimes: DeafTimes;
  readonly serverLives: readonly ServerLife[];
  readonly servers: () => readonly {
    readonly name: string;
    readonly cache: Cache | undefined;
    readonly wallMs: () => number;
  }[];
  readonly epilogue: () => Epilogue;
  readonly messages: MessageFacts | undefined;
  readonly receivers: ReceiverFacts | undefined;
  readonly taskMessages: TaskMessageFacts | undefined;
  readonly nodes: NodeFacts | undefined;
  readonly machines: MachineFacts | undefined;
  readonly runLog: (instanceId: string) => string;
  readonly calmUpdates: boolean;
  /** The number of commits after which everything is counted again. */
  readonly recountEvery: number;
}

export class Verdict {
  readonly #options: VerdictOptions;
  readonly progress: Progress;
  /** A restore changes the past. Then the epilogue judges, and the checkers that a restore does not concern. */
  readonly #checkers: Readonly<Record<'not' | 'now' | 'done', readonly Checker[]>>;
  #restoring: 'not' | 'now' | 'done' = 'not';
  #violation: Violation | undefined;

  constructor(options: VerdictOptions) {
    this.#options = options;
    const { nowMs, tally, history, guests, deafTimes, servers } = options;
    this.progress = new Progress({ state: history.state, tally, nowMs });
    const facts = {
      ...options,
      state: history.state,
      world: guests,
      volumes: guests,
      deaf: () => deafTimes.spans(),
      servers: () => servers().flatMap(({ name, cache, wallMs }) => (cache ? [{ name, cache, wallMs }] : [])),
    };
    const checkers = checkerFactories.map((create) => create(facts));
    this.#checkers = {
      not: checkers,
      now: checkers.filter(({ overRestore }) => overRestore === 'throughout'),
      done: checkers.filter(({ overRestore }) => overRestore !== undefined),
    };
  }

  get violation(): Violation | undefined {
    return this.#violation;
  }

  /** Keeps the first violation; later ones may be its consequences. */
  readonly violate = (invariant: number, message: string): void => {
    if (this.#violation !== undefined) return;
    this.#violation = { invariant, message, atMs: Math.round(this.#options.nowMs()) };
    this.#options.trace.line(() => `VIOLATION of invariant ${invariant}: ${message}`);
  };

  onCommit(commit: Commit): void {
    const { excused, epilogue, trace, recountEvery } = this.#options;
    excused.note(commit.events);
    this.#noteClosing(commit);
    if (this.#restoring === 'done') epilogue().note(commit.events);
    trace.line(() => `commit ${commit.revision}: ${commit.events.flatMap(summaryOf).join('; ')}`);
    this.progress.note(commit);
    this.#ask((checker) => checker.onCommit?.(commit));
    if (commit.revision % recountEvery === 0) this.recount();
  }

  onGuest(host: string, instanceId: string): void {
    this.#options.trace.addGuest(host, instanceId);
    this.#ask((checker) => checker.onGuest?.(host, instanceId));
  }

  onCached(cached: Cached): void {
    this.#ask((checker) => checker.onCached?.(cached));
  }

  onMessage(event: MessageEvent): void {
    this.#ask((checker) => checker.onMessage?.(event));
  }

  onTaskMessage(event: MessageEvent): void {
    this.#ask((checker) => checker.onTaskMessage?.(event));
  }

  onDelivery(delivery: Delivery): void {
    this.#ask((checker) => checker.onDelivery?.(delivery));
  }

  /** Before a control plane handles a request. Reports go to all checkers, also during a restore. */
  onRequest(request: SeenRequest): void {
    const { peer, path, bodyText } = request;
    this.#options.trace.addRequest(request);
    if (!path.endsWith('/reports') || bodyText === undefined) return;
    const body: unknown = JSON.parse(bodyText);
    if (!matches(Reports, body)) return;
    for (const report of body.reports)
      for (const checker of this.#checkers.not) checker.onReport?.({ host: peer, epoch: body.epoch, report });
  }

  /** Compares what the checkers counted event by event with what is there. */
  recount(): void {
    for (const checker of this.#asked()) {
      const fault = checker.recount?.();
      if (fault !== undefined)
        this.violate(0, `the checker of invariant ${checker.invariant} is at fault: it ${fault}`);
    }
  }

  /** The first reason why the cluster is not at rest, if there is one; asks every checker. `servers`: those that must be up. */
  unrest(servers: readonly { readonly name: string; readonly cache: Cache | undefined }[]): Unrest | undefined {
    const found: Unrest[] = [];
    if (this.#restoring !== 'not') found.push(...this.#unrestOfRestore());
    for (const checker of this.#asked()) {
      const { invariant } = checker;
      for (const message of checker.unrest?.() ?? []) found.push({ invariant, message });
      const overdue = checker.overdue?.();
      if (overdue !== undefined) this.violate(invariant, overdue);
    }
    for (const { name, cache } of servers)
      if (cache === undefined) found.push({ invariant: 9, message: `${name} does not come up` });
    return found[0];
  }

  #unrestOfRestore(): Unrest[] {
    const epilogue = this.#options.epilogue();
    const fault = epilogue.fault();
    if (fault) this.violate(fault.invariant, fault.message);
    const waits = epilogue.unrest();
    return waits ? [waits] : [];
  }

  #asked(): readonly Checker[] {
    return this.#checkers[this.#restoring];
  }

  #ask(question: (checker: Checker) => string | undefined): void {
    for (const checker of this.#asked()) {
      const fault = question(checker);
      if (fault !== undefined) this.violate(checker.invariant, fault);
    }
  }

  #noteClosing({ events }: Commit): void {
    const { deafTimes } = this.#options;
    for (const { key, after } of events) {
      if (key !== keys.cluster || after?.kind !== 'cluster') continue;
      if (after.closed) {
        if (this.#restoring !== 'now') deafTimes.noteClosed();
        this.#restoring = 'now';
      } else if (this.#restoring === 'now') {
        this.#restoring = 'done';
        deafTimes.noteOpened();
        for (const checker of this.#asked()) checker.onRestored?.();
      }
    }
  }
}
