// Keeps guests on QEMU's own network from services of their host and from link-local addresses, with one nftables table of this agent. The table
// stays while no agent runs, and is loaded again when another program removed it. It touches no other table.

import { readFile, writeFile } from 'node:fs/promises';
import type { Clock, Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { type GuestUsers, usersAtWork } from '../host/guest-user.ts';
import { hostGuardRules, resolversIn } from './host-guard-rules.ts';
import { type NetworkTools, networkTools } from './network-tools.ts';

export interface HostGuard {
  /**
   * When this resolves, the host is closed to guests of its users and of the users `besides`, which earlier settings gave to guests that
   * still run. A second call is harmless. Throws `HypervisorFailed`, and continues to try.
   */
  close(besides?: readonly number[]): Promise<void>;
  /** Removes the rules, unless `unused` now says that a guest has such a user. Harmless when there are no rules. */
  open(unused: () => boolean): Promise<void>;
  /** True: an earlier run of the agent loaded rules, which `open` removes. Changes nothing. Throws `HypervisorFailed`. */
  adopt(): Promise<boolean>;
  /** Why nftables cannot be used here, for people; undefined: they can be used, so `close` should succeed. Changes nothing. */
  fault(): Promise<string | undefined>;
  /** Removes the rules after the control plane refused this agent for good, unless a process runs as one of their users. Harmless without rules. */
  leave(): Promise<void>;
  /** Stops looking, and leaves the rules in place. */
  stop(): void;
}

export interface HostGuardOptions {
  /** `hostGuardTable` of this agent. */
  readonly table: string;
  /** Absent: only the users that `close` names. */
  readonly users?: GuestUsers;
  /** Whether guests reach what listens on the host. Default: they do not. */
  readonly hostOpen?: boolean;
  /** TCP ports of the host that stay open to guests. */
  readonly ports: readonly number[];
  /** Whether guests reach private addresses of the host's network. */
  readonly privateAddresses: 'allow' | 'deny';
  /** The file that nft reads the rules from; people may read it too. */
  readonly rulesFile: string;
  /** Default: /etc/resolv.conf of the host. */
  readonly resolvFile?: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How long guests may reach the host after another program removed the rules, such as a firewall that was reloaded. */
const lookAgainMs = 10_000;

export function createHostGuard(options: HostGuardOptions): HostGuard {
  return new NftHostGuard(options);
}

class NftHostGuard implements HostGuard {
  readonly #options: HostGuardOptions;
  readonly #tools: NetworkTools;
  /** The rules that this run of the agent loaded into the kernel; undefined: none, or unknown. */
  #applied: string | undefined;
  /** A table of this agent may exist. */
  #mayBeThere = false;
  /** Users besides the configured ones. */
  #others: readonly number[] = [];
  /** The guard was requested, whether or not its rules could be loaded. */
  #wanted = false;
  /** The last logged reason why the rules cannot be loaded. The same reason is not logged again. */
  #logged: string | undefined;
  #timer: Timer | undefined;
  #stopped = false;
  #line: Promise<unknown> = Promise.resolve();

  constructor(options: HostGuardOptions) {
    this.#options = options;
    this.#tools = networkTools(options.clock);
  }

  close(besides: readonly number[] = []): Promise<void> {
    return this.#inLine(async () => {
      this.#others = besides;
      if (this.#wanted && this.#applied !== undefined && this.#applied === (await this.#rulesNow())) return;
      this.#wanted = true;
      this.#lookAgain();
      await this.#apply();
    });
  }

  open(unused: () => boolean): Promise<void> {
    return this.#inLine(async () => {
      if (!unused()) return;
      this.#giveUp();
      if (this.#mayBeThere) await this.#takeAway();
    });
  }

  adopt(): Promise<boolean> {
    return this.#inLine(async () => {
      this.#mayBeThere = (await this.#isThere()) || this.#mayBeThere;
      return this.#mayBeThere;
    });
  }

  leave(): Promise<void> {
    const { log, table } = this.#options;
    return this.#inLine(async () => {
      this.#giveUp();
      if (!this.#mayBeThere && !(await this.#isThere())) return;
      if (await this.#isAnyAtWork()) {
        log.warn('left the rules that keep guests from their host in place: guests run on', { table });
        return;
      }
      await this.#takeAway();
    });
  }

  async fault(): Promise<string | undefined> {
    try {
      await this.#tools.run('nft', ['list', 'tables']);
      return undefined;
    } catch (error) {
      return describeError(error);
    }
  }

  stop(): void {
    this.#stopped = true;
    this.#timer?.cancel();
  }

  /** One action at a time: a table that is removed while a guest comes exists again before the guest starts. */
  #inLine<Result>(act: () => Promise<Result>): Promise<Result> {
    const result = this.#line.then(act);
    this.#line = result.catch(() => {}); // the caller handles the error
    return result;
  }

  #giveUp(): void {
    this.#wanted = false;
    this.#timer?.cancel();
  }

  async #apply(): Promise<void> {
    const { rulesFile } = this.#options;
    const rules = await this.#rulesNow();
    this.#applied = undefined; // until the rules are loaded, so that a failure leads to another attempt
    await writeFile(rulesFile, rules, { mode: 0o600 });
    this.#mayBeThere = true;
    await this.#tools.run('nft', ['--file', rulesFile]);
    this.#applied = rules;
  }

  async #takeAway(): Promise<void> {
    const { table } = this.#options;
    this.#applied = undefined;
    // Adds the table first, so that the deletion also succeeds when another program has removed it.
    await this.#tools.run('nft', [`add table inet ${table}; delete table inet ${table}`]);
    this.#mayBeThere = false;
  }

  async #isThere(): Promise<boolean> {
    const tables = await this.#tools.run('nft', ['list', 'tables']);
    return tables.split('\n').includes(`table inet ${this.#options.table}`);
  }

  async #rulesNow(): Promise<string> {
    const { table, users, hostOpen, ports, privateAddresses, resolvFile = '/etc/resolv.conf' } = this.#options;
    const resolvers = await readFile(resolvFile, 'utf8').catch(() => ''); // without the file, QEMU has no resolver either
    return hostGuardRules({
      table,
      ...(users === undefined ? {} : { users }),
      ...(hostOpen === undefined ? {} : { hostOpen }),
      besides: this.#others,
      ports,
      privateAddresses,
      resolvers: resolversIn(resolvers),
    });
  }

  /** If no run of this agent has said whose rules these are, they may belong to a running guest. */
  async #isAnyAtWork(): Promise<boolean> {
    const { users } = this.#options;
    if (users === undefined && this.#others.length === 0) return true;
    const isConcerned = (user: number): boolean =>
      this.#others.includes(user) || (users !== undefined && user >= users.first && user < users.first + users.count);
    return [...(await usersAtWork())].some(isConcerned);
  }

  #lookAgain(): void {
    this.#timer?.cancel();
    if (this.#stopped || !this.#wanted) return;
    const look = (): void => void this.#lookAndRepeat();
    this.#timer = this.#options.clock.setTimer(lookAgainMs, look, { background: true });
  }

  async #lookAndRepeat(): Promise<void> {
    await this.#inLine(() => this.#look()).catch((error: unknown) => this.#report(describeError(error)));
    this.#lookAgain();
  }

  async #look(): Promise<void> {
    const { log, table } = this.#options;
    if (this.#stopped || !this.#wanted || (await this.#isInPlace())) return;
    await this.#apply();
    this.#logged = undefined;
    log.warn(
      'put in place the rules that keep guests from what listens on their host: they were not there, or others',
      { table },
    );
  }

  async #isInPlace(): Promise<boolean> {
    if (this.#applied === undefined || this.#applied !== (await this.#rulesNow())) return false;
    return this.#isThere();
  }

  #report(reason: string): void {
    const { log } = this.#options;
    if (reason !== this.#logged)
      log.error('cannot keep guests from what listens on their host; trying again', { error: reason });
    this.#logged = reason;
  }
}
