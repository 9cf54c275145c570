// Commit statuses: for every job that a webhook asked for, the forge is told what the job's record says. Only the leader
// sends, so that each status has one sender; a new leader looks at all jobs.

import type { Timer } from '../../../base/clock.ts';
import type { Logger } from '../../../base/log.ts';
import { statusToSend } from '../../../core/operations/jobs/webhook-status.ts';
import { prefixOf } from '../../../core/state/keys.ts';
import type { Decider } from '../../decide.ts';
import type { ForgeParts } from '../../intake/forges/forges.ts';
import type { PartReport } from '../../outside.ts';
import { StatusSender } from './status-sender.ts';

interface StatusParts {
  readonly decider: Decider;
  readonly forges: ForgeParts;
  readonly leads: () => boolean;
  readonly log: Logger;
}

/** All jobs are looked at once a minute: a status that was due while no one led is sent then. */
const passMs = 60_000;

export class CommitStatuses {
  readonly #parts: StatusParts;
  readonly #senders: ReadonlyMap<string, StatusSender>;
  #led = false;
  #isStopped = false;
  #timer: Timer | undefined;
  #forget: (() => void) | undefined;

  constructor(parts: StatusParts) {
    this.#parts = parts;
    const { decider, leads, log, forges } = parts;
    const { fetch, externalUrl } = forges;
    // Without a token a forge takes no status.
    const hooks = forges.hooks.filter(({ token }) => token !== undefined);
    this.#senders = new Map(
      hooks.map((hook) => [hook.name, new StatusSender({ decider, hook, fetch, externalUrl, leads, log })]),
    );
  }

  /** This process leads from now on. */
  lead(): void {
    if (this.#led || this.#isStopped || this.#senders.size === 0) return;
    this.#led = true;
    const prefix = prefixOf('job');
    this.#forget = this.#parts.decider.cache.onCommitted((key) => {
      if (key.startsWith(prefix)) this.#look(key);
    });
    this.#pass();
  }

  /** To be called before another process may lead. */
  stepDown(): void {
    this.#led = false;
    this.#timer?.cancel();
    this.#forget?.();
    for (const sender of this.#senders.values()) sender.stepDown();
  }

  /** For each hook, whether its forge takes commit statuses. */
  report(): readonly PartReport[] {
    return this.#parts.forges.hooks.map(({ name, forge }) => {
      const trouble = this.#senders.get(name)?.trouble;
      const sends = this.#senders.has(name)
        ? 'commit statuses are sent'
        : 'without a token no commit statuses are sent';
      const message = trouble === undefined ? sends : `the forge did not take the last commit status: ${trouble}`;
      return { name: `${forge} ${name}`, ok: trouble === undefined, message };
    });
  }

  async stop(): Promise<void> {
    this.#isStopped = true;
    this.stepDown();
    await Promise.all([...this.#senders.values()].map((sender) => sender.stop()));
  }

  #pass(): void {
    const { cache, clock } = this.#parts.decider;
    for (const { key } of cache.listCommitted('job')) this.#look(key);
    this.#timer = clock.setTimer(passMs, () => this.#pass(), { background: true });
  }

  #look(key: string): void {
    const { cache } = this.#parts.decider;
    const entry = cache.committed('job', key);
    const sender = this.#senders.get(entry?.value.spec.forge?.hook ?? '');
    if (entry && sender && statusToSend(cache, entry)) sender.add(key);
  }
}
