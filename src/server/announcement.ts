// Announces the address of this control plane while it runs, and knows the addresses of the others. Nothing depends on it: a client that
// follows an old announcement gets no connection, and tries another server.

import type { Timer } from '../base/clock.ts';
import { describeError, type Logger } from '../base/log.ts';
import { version } from '../base/version.ts';
import { announceEveryMs, announceMember, withdrawMember } from '../core/operations/servers/member.ts';
import { keys, prefixOf } from '../core/state/keys.ts';
import { type Decider, decideAndCommit } from './decide.ts';

interface AnnouncementParts {
  readonly decider: Decider;
  readonly log: Logger;
  readonly name: string;
  /** Absent: other machines cannot reach this server. */
  readonly url: string | undefined;
}

const retryMs = 10_000;

export class Announcement {
  readonly #parts: AnnouncementParts;
  #announced: string | undefined;
  #timer: Timer | undefined;
  #working: Promise<void> | undefined;
  #stopped = false;
  readonly #forget: () => void;

  constructor(parts: AnnouncementParts) {
    this.#parts = parts;
    const prefix = prefixOf('member');
    this.#forget = parts.decider.cache.onCommitted((key) => {
      if (!key.startsWith(prefix)) return;
      this.#read();
      if (key === keys.member(parts.name)) this.#again(0); // a restore may have removed it
    });
    this.#read();
  }

  /** All announced servers, as in the header `berth-servers`; undefined: there are none. */
  get announced(): string | undefined {
    return this.#announced;
  }

  start(): void {
    this.#again(0);
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#timer?.cancel();
    this.#forget();
    await this.#working;
    const { decider, name } = this.#parts;
    // Without this the address stays known for a week, which costs clients a failed attempt.
    await decideAndCommit(decider, (snapshot) => withdrawMember(snapshot, name)).catch(() => undefined);
  }

  #read(): void {
    const urls = [...this.#parts.decider.cache.listCommitted('member')].flatMap(({ value }) => value.url ?? []);
    this.#announced = urls.length === 0 ? undefined : [...new Set(urls)].sort().join(', ');
  }

  #again(delayMs: number): void {
    if (this.#stopped) return;
    this.#timer?.cancel();
    const run = (): void => {
      this.#working ??= this.#announce().finally(() => (this.#working = undefined));
    };
    this.#timer = this.#parts.decider.clock.setTimer(delayMs, run, { background: true });
  }

  async #announce(): Promise<void> {
    const { decider, log, name, url } = this.#parts;
    try {
      await decideAndCommit(decider, (snapshot, ctx) => announceMember(snapshot, { name, url, version }, ctx));
      this.#again(announceEveryMs);
    } catch (error) {
      log.warn('cannot announce this server; it is tried again', { url, error: describeError(error) });
      this.#again(retryMs);
    }
  }
}
