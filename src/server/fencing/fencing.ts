// Carries out orders to power hosts off, and records what the power state is afterwards. Only the leader does; an order
// that a former leader may have begun is carried out once more, which changes nothing for a host that is off.

import type { Host } from '../../api/resources/host.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { fenced } from '../../core/operations/hosts/fenced.ts';
import { prefixOf } from '../../core/state/keys.ts';
import { decideAndCommit, type Decider } from '../decide.ts';

export type FencedHost = Pick<Host, 'metadata' | 'status'>;

export interface FenceHook {
  /** Orders the machine to be powered off. Resolves when that was accepted; what it says is recorded. */
  off(host: FencedHost, signal: AbortSignal): Promise<string>;
  /** The power state, read from the machine: `off` is a proof, everything else is none. */
  state(host: FencedHost, signal: AbortSignal): Promise<string>;
}

export class Fencing {
  readonly #parts: { readonly decider: Decider; readonly hook: FenceHook; readonly log: Logger };
  /** By key of the host. */
  readonly #running = new Map<string, { readonly attempt: number; readonly stop: AbortController }>();
  readonly #ending = new Set<Promise<void>>();
  #forget: (() => void) | undefined;

  constructor(parts: { readonly decider: Decider; readonly hook: FenceHook; readonly log: Logger }) {
    this.#parts = parts;
  }

  lead(): void {
    const { cache } = this.#parts.decider;
    const hosts = prefixOf('host');
    this.#forget ??= cache.onCommitted((key) => {
      if (key.startsWith(hosts)) this.#look(key);
    });
    for (const { key } of cache.listCommitted('host')) this.#look(key);
  }

  /** To be called before another process may lead. */
  stepDown(): void {
    this.#forget?.();
    this.#forget = undefined;
    for (const { stop } of this.#running.values()) stop.abort();
    this.#running.clear();
  }

  async stop(): Promise<void> {
    this.stepDown();
    await Promise.all(this.#ending);
  }

  #look(key: string): void {
    const host: Host | undefined = this.#parts.decider.cache.committed('host', key)?.value;
    const order = host?.status.down?.fence;
    const running = this.#running.get(key);
    if (!host || order?.state !== 'ordered' || running?.attempt === order.attempt) return;
    running?.stop.abort();
    const stop = new AbortController();
    this.#running.set(key, { attempt: order.attempt, stop });
    const work = this.#carryOut(host, order.attempt, stop.signal).finally(() => {
      this.#ending.delete(work);
      if (this.#running.get(key)?.stop === stop) this.#running.delete(key);
    });
    this.#ending.add(work);
  }

  async #carryOut(host: Host, attempt: number, signal: AbortSignal): Promise<void> {
    const { decider, hook, log } = this.#parts;
    const { name } = host.metadata;
    let outcome: { readonly off: boolean; readonly message: string };
    try {
      const said = await hook.off(host, signal);
      const state = await hook.state(host, signal);
      outcome = { off: state === 'off', message: `${said}; power state read back: ${state}` };
    } catch (error) {
      outcome = { off: false, message: describeError(error) };
    }
    if (signal.aborted) return; // another leader carries it out again
    log[outcome.off ? 'info' : 'warn']('a host was to be powered off', { host: name, attempt, ...outcome });
    await decideAndCommit(decider, (snapshot, ctx) => fenced(snapshot, { name, attempt, ...outcome }, ctx)).catch(
      (error: unknown) => log.warn('cannot record the outcome', { host: name, error: describeError(error) }),
    );
  }
}
