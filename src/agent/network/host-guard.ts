// Keeps guests on QEMU's own network from what listens on their host and from link-local addresses, as long as there are any that run as users of their own: one nftables table
// of this agent's, put back when somebody took it away. It stays while no agent runs. It touches no other table.

import { readFile, writeFile } from 'node:fs/promises';
import type { Clock, Timer } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import { type GuestUsers, usersAtWork } from '../host/guest-user.ts';
import { hostGuardRules, resolversIn } from './host-guard-rules.ts';
import { networkTools } from './network-tools.ts';

export interface HostGuard {
  /**
   * The host is closed to guests of its users, and of those `besides`, whom other settings gave to guests that still run, when this
   * resolves. A second time is harmless. Throws `HypervisorFailed`, and goes on trying.
   */
  close(besides?: readonly number[]): Promise<void>;
  /** No guest has such a user any more, if `unused` still says so: takes away what `close` made. Harmless when that is nothing. */
  open(unused: () => boolean): Promise<void>;
  /** Whether an earlier run of the agent closed it, for `open` to take that away. Changes nothing. Throws `HypervisorFailed`. */
  adopt(): Promise<boolean>;
  /** Why nftables cannot be used here, for people; undefined: they can, and `close` is to succeed. Changes nothing. */
  fault(): Promise<string | undefined>;
  /** The control plane has refused this agent for good: takes the rules away, unless anything runs as one of their users. Harmless when there are none. */
  leave(): Promise<void>;
  /** Lets go, and leaves all as it is. */
  stop(): void;
}

export interface HostGuardOptions {
  /** `hostGuardTable` of this agent. */
  readonly table: string;
  /** Absent: those alone that `close` names. */
  readonly users?: GuestUsers;
  /** Whether guests reach what listens on the host. Default: they do not. */
  readonly hostOpen?: boolean;
  /** TCP ports of the host that guests reach all the same. */
  readonly ports: readonly number[];
  /** Whether guests reach private addresses of the host's network. */
  readonly privateAddresses: 'allow' | 'deny';
  /** Where the rules are written for nft to read; also for people. */
  readonly rulesFile: string;
  /** Default: that of the host. */
  readonly resolvFile?: string;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How long guests may reach the host when somebody took the rules away (a firewall that was loaded anew). */
const lookAgainMs = 10_000;

export function createHostGuard(options: HostGuardOptions): HostGuard {
  const {
    table,
    users,
    hostOpen,
    ports,
    privateAddresses,
    rulesFile,
    resolvFile = '/etc/resolv.conf',
    clock,
    log,
  } = options;
  const tools = networkTools(clock);
  /** What this run of the agent put into the kernel; undefined: nothing, or nobody knows. */
  let applied: string | undefined;
  /** There may be a table of ours. */
  let mayBeThere = false;
  let others: readonly number[] = [];
  /** Somebody has asked for it, whether or not it could be had. */
  let wanted = false;
  /** Why it cannot be had, as it was told last: not every ten seconds anew. */
  let told: string | undefined;
  let timer: Timer | undefined;
  let stopped = false;
  let line: Promise<unknown> = Promise.resolve();

  /** One after the other: a table that is taken away while a guest comes is there again before the guest is. */
  const inLine = <Result>(act: () => Promise<Result>): Promise<Result> => {
    const result = line.then(act);
    line = result.catch(() => {}); // is told to whoever asked
    return result;
  };
  const isThere = async (): Promise<boolean> =>
    (await tools.run('nft', ['list', 'tables'])).split('\n').includes(`table inet ${table}`);
  const rulesNow = async (): Promise<string> => {
    const resolvers = await readFile(resolvFile, 'utf8').catch(() => ''); // none: QEMU asks nobody either
    return hostGuardRules({
      table,
      ...(users === undefined ? {} : { users }),
      ...(hostOpen === undefined ? {} : { hostOpen }),
      besides: others,
      ports,
      privateAddresses,
      resolvers: resolversIn(resolvers),
    });
  };
  const apply = async (): Promise<void> => {
    const rules = await rulesNow();
    applied = undefined; // until it is known to be so: whoever asks meanwhile tries anew
    await writeFile(rulesFile, rules, { mode: 0o600 });
    mayBeThere = true;
    await tools.run('nft', ['--file', rulesFile]);
    applied = rules;
  };
  const look = async (): Promise<void> => {
    if (stopped || !wanted || (applied !== undefined && applied === (await rulesNow()) && (await isThere()))) return;
    await apply();
    told = undefined;
    log.warn(
      'put in place the rules that keep guests from what listens on their host: they were not there, or others',
      {
        table,
      },
    );
  };
  const lookAgain = (): void => {
    timer?.cancel();
    if (stopped || !wanted) return;
    const looked = async (): Promise<void> => {
      await inLine(look).catch((error: unknown) => {
        const reason = describeError(error);
        if (reason !== told)
          log.error('cannot keep guests from what listens on their host; trying again', { error: reason });
        told = reason;
      });
      lookAgain();
    };
    timer = clock.setTimer(lookAgainMs, () => void looked(), { background: true });
  };

  const takeAway = async (): Promise<void> => {
    applied = undefined;
    await tools.run('nft', [`add table inet ${table}; delete table inet ${table}`]); // also where somebody was faster
    mayBeThere = false;
  };
  /** Where no run of this agent has said whose rules they are, they may be those of a guest that runs. */
  const anyAtWork = async (): Promise<boolean> => {
    if (users === undefined && others.length === 0) return true;
    const concerned = (user: number): boolean =>
      others.includes(user) || (users !== undefined && user >= users.first && user < users.first + users.count);
    return [...(await usersAtWork())].some(concerned);
  };

  return {
    close: (besides = []) =>
      inLine(async () => {
        others = besides;
        if (wanted && applied !== undefined && applied === (await rulesNow())) return;
        wanted = true;
        lookAgain();
        await apply();
      }),
    open: (unused) =>
      inLine(async () => {
        if (!unused()) return;
        wanted = false;
        timer?.cancel();
        if (mayBeThere) await takeAway();
      }),
    adopt: () =>
      inLine(async () => {
        mayBeThere = (await isThere()) || mayBeThere;
        return mayBeThere;
      }),
    leave: () =>
      inLine(async () => {
        wanted = false;
        timer?.cancel();
        if (!mayBeThere && !(await isThere())) return;
        if (await anyAtWork()) {
          log.warn('left the rules that keep guests from their host in place: guests run on', { table });
          return;
        }
        await takeAway();
      }),
    async fault() {
      try {
        await tools.run('nft', ['list', 'tables']);
        return undefined;
      } catch (error) {
        return describeError(error);
      }
    },
    stop() {
      stopped = true;
      timer?.cancel();
    },
  };
}
