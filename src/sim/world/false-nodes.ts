// The nodes of another system, as its HTTP API tells them: some vanish and come back, and its answers may be late, broken, or a part of the
// list. Its usage is what others use and our holds, of which it hears only after a while.

import { createHash } from 'node:crypto';
import type { WebFetch } from '../../base/fetch-json.ts';
import type { Prng } from '../../base/prng.ts';
import type { Tally } from '../batch/tally.ts';
import type { Commit } from '../history.ts';
import type { ProcessClock } from './process-clock.ts';
import type { Timeline } from './timeline.ts';

export interface FalseNodesOptions {
  readonly timeline: Timeline;
  readonly prng: Prng;
  readonly stormy: () => boolean;
  readonly tally: Tally;
  readonly trace: (line: () => string) => void;
}

export interface TrueNode {
  readonly name: string;
  readonly capacity: { readonly VCPU: number; readonly MEMORY_MB: number };
  /** By others than Berth; it never changes. */
  readonly foreign: { readonly VCPU: number; readonly MEMORY_MB: number };
  readonly pool: string | undefined;
  readonly dedicated: boolean;
  /** Until then it is not in the list. */
  awayUntilMs: number;
}

/** Room that Berth holds on a node, or held. */
interface Hold {
  readonly node: string;
  readonly VCPU: number;
  readonly MEMORY_MB: number;
  readonly fromMs: number;
  toMs: number;
}

const awayMsMax = 15_000;

export class FalseNodes {
  readonly url = 'http://nodes.example/nodes';
  readonly intervalMs: number;
  readonly #options: FalseNodesOptions;
  readonly #nodes: readonly TrueNode[];
  /** By key of the allocation. */
  readonly #holds = new Map<string, Hold>();
  /** While it fails. */
  #downUntilMs = 0;

  constructor(options: FalseNodesOptions) {
    this.#options = options;
    const { prng } = options;
    this.intervalMs = 1_000 * (2 + prng.below(4));
    this.#nodes = Array.from({ length: 1 + prng.below(6) }, (_, i) => drawNode(`node-${i + 1}`, prng));
  }

  node(name: string): TrueNode | undefined {
    return this.#nodes.find((node) => node.name === name);
  }

  get names(): readonly string[] {
    return this.#nodes.map(({ name }) => name);
  }

  /** The room that tasks hold is used, as their owners use it. */
  note({ events }: Commit): void {
    const { nowMs } = this.#options.timeline;
    for (const { key, before, after } of events) {
      const known = this.#holds.get(key);
      if (before?.kind === 'allocation' && after === null && known) known.toMs = nowMs;
      if (before === null && after !== null && known) known.toMs = Number.POSITIVE_INFINITY; // a restore brought it back
      if (after?.kind !== 'allocation' || known || this.node(after.host) === undefined) continue;
      const sum = (of: string): number =>
        Object.values(after.amounts).reduce((total, amounts) => total + (amounts[of] ?? 0), 0);
      const amounts = { VCPU: sum('VCPU'), MEMORY_MB: sum('MEMORY_MB') };
      this.#options.tally.hit('node-held');
      this.#holds.set(key, { node: after.host, ...amounts, fromMs: nowMs, toMs: Number.POSITIVE_INFINITY });
    }
  }

  /** Of a process that lives by this clock. */
  fetchFor(clock: ProcessClock): WebFetch {
    return (_url, { signal, headers }) =>
      new Promise((resolve, reject) => {
        signal.addEventListener('abort', () => reject(new Error('aborted')), { once: true });
        this.#options.timeline.schedule(this.#delayMs(), () => {
          const answer = this.#answer(headers['if-none-match']);
          if (answer === 'hangs') return;
          clock.deliver(this.#delayMs(), () => resolve(responseOf(answer)));
        });
      });
  }

  #answer(known: string | undefined): Answer | 'hangs' {
    const { prng, stormy, tally, timeline } = this.#options;
    if (!stormy()) return listed(this.#list(), known);
    if (prng.chance(1, 30)) this.#downUntilMs = timeline.nowMs + prng.below(awayMsMax);
    if (timeline.nowMs < this.#downUntilMs) {
      tally.hit('inventory-down');
      return prng.chance(1, 3) ? 'hangs' : { status: 503, text: 'not now' };
    }
    this.#loseSome();
    const list = this.#list();
    switch (prng.below(24)) {
      case 0:
        tally.hit('inventory-half');
        return listed(list.slice(0, Math.floor(list.length / 2)), undefined);
      case 1:
        tally.hit('inventory-empty');
        return listed([], undefined);
      case 2:
        tally.hit('inventory-broken');
        return { status: 200, text: JSON.stringify([...list, ...list]).slice(0, prng.chance(1, 2) ? 40 : undefined) };
      default:
        return listed(list, known);
    }
  }

  #loseSome(): void {
    const { prng, timeline, tally, trace } = this.#options;
    for (const node of this.#nodes) {
      const isUsed = this.#heldOn(node.name, 'VCPU', timeline.nowMs) > 0;
      if (!prng.chance(isUsed ? 4 : 1, 20) || timeline.nowMs < node.awayUntilMs) continue;
      node.awayUntilMs = timeline.nowMs + prng.below(awayMsMax) + (isUsed ? awayMsMax : 0);
      tally.hit('node-vanished');
      trace(() => `${node.name} vanishes until ${node.awayUntilMs / 1000}`);
    }
  }

  #list(): readonly object[] {
    const { timeline, prng, stormy } = this.#options;
    // It hears of a hold, and of its end, within the time of one poll; berth expects two.
    const heardMs = timeline.nowMs - prng.below(this.intervalMs);
    return this.#nodes
      .filter(({ awayUntilMs }) => !stormy() || timeline.nowMs >= awayUntilMs)
      .map(({ name, capacity, foreign, pool, dedicated }) => ({
        name,
        cpu: capacity.VCPU,
        memory: capacity.MEMORY_MB,
        usage_cpu: Math.min(capacity.VCPU, foreign.VCPU + this.#heldOn(name, 'VCPU', heardMs)),
        usage_mem: Math.min(capacity.MEMORY_MB, foreign.MEMORY_MB + this.#heldOn(name, 'MEMORY_MB', heardMs)),
        dedicated,
        ...(pool === undefined ? {} : { pool }),
      }));
  }

  #heldOn(name: string, of: 'VCPU' | 'MEMORY_MB', atMs: number): number {
    let sum = 0;
    for (const hold of this.#holds.values())
      if (hold.node === name && hold.fromMs <= atMs && atMs < hold.toMs) sum += hold[of];
    return sum;
  }

  #delayMs(): number {
    const { prng, stormy } = this.#options;
    return 1 + prng.below(stormy() && prng.chance(1, 6) ? 9_000 : 30);
  }
}

interface Answer {
  readonly status: number;
  readonly text: string;
  readonly etag?: string;
}

function listed(nodes: readonly object[], known: string | undefined): Answer {
  const text = JSON.stringify(nodes);
  const etag = `"${createHash('sha256').update(text).digest('hex').slice(0, 16)}"`;
  return known === etag ? { status: 304, text: '', etag } : { status: 200, text, etag };
}

function responseOf({ status, text, etag }: Answer): Awaited<ReturnType<WebFetch>> {
  const get = (name: string): string | null => (name === 'etag' ? (etag ?? null) : null);
  return { status, headers: { get }, body: bytesOf(text) };
}

async function* bytesOf(text: string): AsyncGenerator<Uint8Array> {
  yield Buffer.from(text);
}

function drawNode(name: string, prng: Prng): TrueNode {
  const capacity = { VCPU: 2 + prng.below(8), MEMORY_MB: 1024 * (2 + prng.below(8)) };
  const foreign = prng.chance(3, 4)
    ? { VCPU: prng.below(capacity.VCPU), MEMORY_MB: prng.below(capacity.MEMORY_MB) }
    : { VCPU: 0, MEMORY_MB: 0 };
  const pool = prng.chance(3, 4) ? 'outside' : undefined;
  return { name, capacity, foreign, pool, dedicated: prng.chance(1, 8), awayUntilMs: 0 };
}
