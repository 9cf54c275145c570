// The agent under random wishes and random trouble: whatever happens, once it is quiet the host is as it is wanted, the control
// plane knows it, and nothing ever ran twice. A failing seed is replayed by its number.

import { describe, expect, it } from 'vitest';
import type { Assignment } from '../api/agent-protocol.ts';
import { type Prng, seededPrng } from '../base/prng.ts';
import type { Agent } from './agent.ts';
import { hostName, makeHost } from './testing.ts';

const seeds = 150;
const steps = 40;
const ids = ['1', '2', '3'].map((digit) => `inst_${digit.repeat(26)}`);

type Host = ReturnType<typeof makeHost>;
type Wish = Pick<Assignment, 'instanceId' | 'incarnation' | 'want'>;

describe('the agent under random trouble', () => {
  it.each(Array.from({ length: seeds }, (_, seed) => seed))('seed %i', async (seed) => {
    const prng = seededPrng(seed, 'agent');
    const host = makeHost();
    const wishes = new Map<string, Wish>();
    let agent: Agent = await host.startAgent();
    for (let step = 0; step < steps; step++) {
      switch (prng.below(12)) {
        case 0:
          host.plane.setAway(!host.plane.away);
          break;
        case 1:
          host.plane.answersLost = !host.plane.answersLost;
          break;
        case 2:
          host.plane.breakLines();
          break;
        case 3:
          await agent.stop();
          agent = await host.startAgent();
          break;
        case 4:
          host.plane.epoch += 1;
          break;
        case 5:
          host.world.crash(hostName, pick(prng, ids));
          break;
        case 6:
          host.world.inject(fault(prng));
          break;
        default:
          wish(prng, host, wishes);
      }
      await host.pass(prng.below(4) === 0 ? prng.below(30_000) : prng.below(1500));
      dropWhatIsAbsent(host, wishes);
    }

    host.plane.setAway(false);
    host.plane.answersLost = false;
    for (let quiet = 0; quiet < 6; quiet++) {
      await host.pass(30_000);
      dropWhatIsAbsent(host, wishes);
    }
    expect(faultsOf(host, wishes)).toEqual([]);
    await host.stopAll();
  });
});

function pick<T>(prng: Prng, list: readonly [T, ...T[]] | readonly T[]): T {
  return list[prng.below(list.length)]!;
}

function fault(prng: Prng): Parameters<Host['world']['inject']>[0] {
  const step = pick(prng, ['pull', 'clone', 'start'] as const);
  return pick(prng, [
    { do: 'fail', step, code: 'DiskFull' },
    { do: 'slow', factor: 2 },
    { do: 'crash', afterMs: 700 },
    { do: 'power-off', afterMs: 2500 },
    { do: 'ignore-power-button' },
  ] as const);
}

/** One change as the control plane makes them: a new incarnation only when the one before is to be absent. */
function wish(prng: Prng, host: Host, wishes: Map<string, Wish>): void {
  const instanceId = pick(prng, ids);
  const before = wishes.get(instanceId);
  const change = (want: Assignment['want'], incarnation: number): void => {
    const next = { instanceId, incarnation, want };
    wishes.set(instanceId, next);
    host.plane.put(next);
  };
  if (before === undefined) return change('running', 1);
  switch (prng.below(5)) {
    case 0:
      return change('absent', before.incarnation);
    case 1:
      host.plane.put({ ...before, want: 'absent' });
      return change('running', before.incarnation + 1);
    case 2:
      return before.want === 'absent' ? undefined : change('stopped', before.incarnation);
    case 3:
      return before.want === 'absent' ? undefined : change('suspended', before.incarnation);
    default:
      return before.want === 'absent' ? undefined : change('running', before.incarnation);
  }
}

/** The control plane's part: what was reported absent and is wanted so is dropped. */
function dropWhatIsAbsent(host: Host, wishes: ReadonlyMap<string, Wish>): void {
  for (const { instanceId, incarnation, guest } of host.plane.reports) {
    const wish = wishes.get(instanceId);
    const wantedAbsent = wish !== undefined && (wish.incarnation > incarnation || wish.want === 'absent');
    if (guest.state === 'absent' && wantedAbsent && host.plane.has(instanceId, incarnation)) {
      host.plane.drop(instanceId, incarnation);
    }
  }
}

function faultsOf(host: Host, wishes: ReadonlyMap<string, Wish>): string[] {
  const faults: string[] = host.world.doubleStarts.map(({ instanceId }) => `${instanceId} ran twice`);
  for (const { instanceId, incarnation, want } of wishes.values()) {
    const guest = host.guest(instanceId);
    const told = host.plane.reports.findLast(
      (report) => report.instanceId === instanceId && report.incarnation === incarnation,
    )?.guest.state;
    const name = `${instanceId}/${incarnation} wanted ${want}`;
    for (let older = 1; older < incarnation; older++) {
      if (host.plane.has(instanceId, older)) faults.push(`${name}: incarnation ${older} was never reported absent`);
    }
    if (want === 'absent') {
      if (guest !== undefined) faults.push(`${name}: it is ${guest.state}`);
      if (host.plane.has(instanceId, incarnation)) faults.push(`${name}: never reported absent, but ${told}`);
      continue;
    }
    const state = guest?.state ?? 'stopped';
    const allowed = [want, 'exited', 'failed'];
    if (!allowed.includes(state) || (want !== 'stopped' && guest === undefined)) faults.push(`${name}: it is ${state}`);
    if (guest !== undefined && guest.incarnation !== incarnation)
      faults.push(`${name}: incarnation ${guest.incarnation} is here`);
    if (told !== state) faults.push(`${name}: it is ${state} and was reported ${told}`);
  }
  return faults;
}
