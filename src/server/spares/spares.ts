// Carries out the steps of spares that need a provisioner or a question to a machine, and reports what came of them. Only the leader does;
// another process goes on from what is written down.

import type { Spare } from '../../api/resources/spare.ts';
import { prefixOf } from '../../core/state/keys.ts';
import type { Fence } from '../leadership.ts';
import type { PartReport } from '../outside.ts';
import { SpareTask, type SparesParts } from './spare-task.ts';
import { isForRunner, stepOf } from './spare-work.ts';

export class Spares {
  readonly #parts: SparesParts;
  /** By key of the spare: the step that is carried out. */
  readonly #tasks = new Map<string, SpareTask>();
  /** By key: the last one that was told to end, until it has. */
  readonly #ending = new Map<string, Promise<void>>();
  #forget: (() => void) | undefined;
  #fence: Fence | undefined;

  constructor(parts: SparesParts) {
    this.#parts = parts;
  }

  /** This process leads from now on, as long as `fence` holds. Steps that are under way may have been begun by another. */
  lead(fence: Fence): void {
    this.#fence = fence;
    const { cache } = this.#parts.decider;
    const spares = prefixOf('spare');
    this.#forget ??= cache.onCommitted((key) => {
      if (key.startsWith(spares)) this.#look(key);
    });
    for (const { key } of cache.listCommitted('spare')) this.#look(key);
  }

  /** To be called before another process may lead. */
  stepDown(): void {
    this.#forget?.();
    this.#forget = undefined;
    this.#fence = undefined;
    for (const key of this.#tasks.keys()) this.#end(key);
  }

  report(): readonly PartReport[] {
    if (this.#tasks.size === 0) return [];
    return [{ name: 'spares', ok: true, message: `${this.#tasks.size} steps of spares are under way` }];
  }

  async stop(): Promise<void> {
    this.stepDown();
    await Promise.all(this.#ending.values());
  }

  #look(key: string): void {
    const spare: Spare | undefined = this.#parts.decider.cache.committed('spare', key)?.value;
    const known = this.#tasks.get(key);
    const step = spare && isForRunner(spare) ? stepOf(key, spare) : undefined;
    if (known && step && known.isFor(step)) return;
    if (known) this.#end(key);
    const fence = this.#fence;
    if (!spare || !step || !fence) return;
    this.#tasks.set(key, new SpareTask({ ...this.#parts, spare, step, fence, former: this.#ending.get(key) }));
  }

  #end(key: string): void {
    const task = this.#tasks.get(key);
    this.#tasks.delete(key);
    if (!task) return;
    const ending = task.stop().finally(() => {
      if (this.#ending.get(key) === ending) this.#ending.delete(key);
    });
    this.#ending.set(key, ending);
  }
}
