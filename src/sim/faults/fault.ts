// What a fault is: one entry of the registry. It says what it strikes and what it does there. The storm (storm.ts) decides when.

import type { Clock } from '../../base/clock.ts';
import type { Prng } from '../../base/prng.ts';
import type { FakeFault, FakeGuest, FakeWorld } from '../../agent/drivers/fake/world.ts';
import type { Store } from '../../store/store.ts';
import type { Tally } from '../batch/tally.ts';
import type { ControlPlaneProcess } from '../world/control-plane-process.ts';
import type { HostProcess } from '../world/host-process.ts';
import type { Network } from '../world/network.ts';
import type { Database } from '../world/sim-database.ts';

/** The parts of a run that faults reach. */
export interface FaultWorld {
  /** The storm's own clock; it never dies. */
  readonly clock: Clock;
  readonly tally: Tally;
  readonly controlPlanes: readonly ControlPlaneProcess[];
  readonly hosts: readonly HostProcess[];
  readonly network: Network;
  readonly world: FakeWorld;
  readonly store: Store;
  readonly database: Database;
  readonly offlineAfterMs: number;
  /** Sets how slow calls of the store are; undefined: as the weather has it. */
  readonly crawl: (latencyMsMean: number | undefined) => void;
  /** The newest revision of the store. */
  readonly revision: () => number;
  /** Actions of an operator, through the API. Each resolves to whether it succeeded. */
  readonly operator: {
    pause(host: string): Promise<boolean>;
    reserve(host: string): Promise<boolean>;
    rule(host: string): Promise<boolean>;
    declareDown(host: string): Promise<boolean>;
  };
  /** Sends one bad request; resolves to whether it was answered. */
  readonly rogueClient: { strike(): Promise<boolean> };
  /** The same, with the token of the first host. */
  readonly rogueAgent: { strike(): Promise<boolean> };
  /** From now on the checkers expect nothing of the guests of this host. */
  readonly distrust: (host: string) => void;
  /** Creates many instances at once and returns how many. */
  readonly burst: (count: number) => number;
}

/** One strike: its random numbers, its targets, and what it may use. */
export interface Strike {
  readonly on: FaultWorld;
  readonly prng: Prng;
  /** Drawn for every strike, whichever of them the fault uses, so that all faults draw alike. */
  readonly targets: {
    readonly serversUp: readonly ControlPlaneProcess[];
    /** One of `serversUp`. */
    readonly server: ControlPlaneProcess | undefined;
    readonly host: HostProcess | undefined;
    /** A host whose agent runs. */
    readonly agent: HostProcess | undefined;
    /** A guest that runs. */
    readonly guest: FakeGuest | undefined;
  };
  /** Counts the fault and writes it to the trace. Called when the fault happens, not when it only tries to. */
  hit(what: string): void;
  /** Waits for this time, or until the storm ends. */
  wait(durationMs: number): Promise<void>;
  /** Gives the fake driver a fault for the next guest that meets it. At most one of each kind waits. */
  inject(fault: FakeFault, what: string): void;
}

export interface Fault<Kind extends string = string> {
  readonly kind: Kind;
  /** On small hosts no guest may ever run: then a run that drew this fault is excused. */
  readonly mayFindNothing?: true;
  /** Also happens while a backup is restored: only faults that end no guest by themselves. */
  readonly whileRestoring?: true;
  /** Drawn after all others, so that seeds known before this fault was added keep their runs. */
  readonly drawnLast?: true;
  strike(strike: Strike): Promise<void> | void;
  /** When the storm ends: repairs what strikes may have left. `struck`: this storm tried this fault. */
  mend?(world: FaultWorld, struck: boolean): void;
}

/** A fault of one target: it happens when the target exists and the fault applies to it. */
interface TargetedFault<Target, Kind extends string> extends Omit<Fault<Kind>, 'strike'> {
  applies?(target: Target): boolean;
  strike(target: Target, strike: Strike): Promise<void> | void;
}

/** A fault of one control plane that is up. */
export const serverFault = <const Kind extends string>(fault: TargetedFault<ControlPlaneProcess, Kind>): Fault<Kind> =>
  targeted(fault, { targetOf: ({ server }) => server, nameOf: ({ name }) => name });

/** A fault of one host whose agent runs. */
export const agentFault = <const Kind extends string>(fault: TargetedFault<HostProcess, Kind>): Fault<Kind> =>
  targeted(fault, { targetOf: ({ agent }) => agent, nameOf: ({ name }) => name });

/** A fault of one guest that runs. */
export const guestFault = <const Kind extends string>(fault: TargetedFault<FakeGuest, Kind>): Fault<Kind> =>
  targeted(
    { ...fault, mayFindNothing: true },
    { targetOf: ({ guest }) => guest, nameOf: ({ instanceId, host }) => `${instanceId} on ${host}` },
  );

function targeted<Target, Kind extends string>(
  fault: TargetedFault<Target, Kind>,
  { targetOf, nameOf }: TargetOf<Target>,
): Fault<Kind> {
  return {
    ...fault,
    strike(strike) {
      const target = targetOf(strike.targets);
      if (target === undefined || fault.applies?.(target) === false) return;
      strike.hit(nameOf(target));
      return fault.strike(target, strike);
    },
  };
}

interface TargetOf<Target> {
  readonly targetOf: (targets: Strike['targets']) => Target | undefined;
  readonly nameOf: (target: Target) => string;
}

export function pick<T>(items: readonly T[], prng: Prng): T | undefined {
  return items[prng.below(Math.max(1, items.length))];
}

/** How long a process stays down: mostly a few seconds, sometimes longer than a host may be silent. */
export function drawDownMs(prng: Prng): number {
  return prng.below(prng.chance(1, 3) ? 20_000 : 3000);
}

/** By how much a wall clock jumps. */
export function drawJumpMs(prng: Prng): number {
  return prng.below(120_000) - 60_000;
}
