// The newest line of this server's audit log, put into the store each minute: a chain alone does not show that its end was cut off.

import type { Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { keys } from '../../core/state/keys.ts';
import type { Snapshot } from '../../core/state/snapshot.ts';
import type { Plan } from '../../core/state/plan.ts';
import { type Decider, decideAndCommit } from '../decide.ts';
import type { AuditHead } from './audit-chain.ts';
import type { AuditLog } from './audit-log.ts';

const everyMs = 60_000;

export class AuditHeads {
  readonly #decider: Decider;
  readonly #audit: AuditLog;
  readonly #log: Logger;
  #stored = 0;
  #timer: Timer | undefined;
  #stopped = false;

  constructor(parts: { decider: Decider; audit: AuditLog; log: Logger }) {
    this.#decider = parts.decider;
    this.#audit = parts.audit;
    this.#log = parts.log;
  }

  start(): void {
    this.#timer = this.#decider.clock.setTimer(everyMs, () => void this.#tick(), { background: true });
  }

  /** Puts the newest line into the store a last time. */
  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    await this.store();
  }

  /** Never throws: the next minute comes. */
  async store(): Promise<void> {
    const { head, server } = this.#audit;
    if (head.seq === this.#stored) return;
    const atMs = Math.floor(this.#decider.clock.nowMs());
    try {
      await decideAndCommit(this.#decider, (snapshot) => storeHead(snapshot, { server, head, atMs }));
      this.#stored = head.seq;
    } catch (error) {
      this.#log.debug('the newest line of the audit log is not in the store', { error: describeError(error) });
    }
  }

  async #tick(): Promise<void> {
    await this.store();
    if (!this.#stopped) this.start();
  }
}

function storeHead(
  snapshot: Snapshot,
  { server, head, atMs }: { readonly server: string; readonly head: AuditHead; readonly atMs: number },
): { readonly plan: Plan } {
  const key = keys.auditHead(server);
  const ifRevision = snapshot.get('auditHead', key)?.revision ?? 0;
  return { plan: { changes: [{ key, ifRevision, value: { kind: 'auditHead', server, ...head, atMs } }] } };
}
