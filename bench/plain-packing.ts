// First fit and best fit as textbooks have them, on plain arrays: what the suite `packing` is compared with. Hosts are all alike and as
// many as are needed, and both open an empty one only where none in use has room; instances leave before others arrive in a second.

import { Departures } from '../src/sim/replay/departures.ts';
import { capacityOf } from '../src/sim/replay/trace-requests.ts';
import type { HostShape } from '../src/sim/replay/replay-fleet.ts';
import type { Trace } from '../src/sim/replay/trace.ts';

type Rule = 'first fit' | 'best fit';

/** Host-hours in use until the last row of the trace has arrived or left. */
export function plainHostHours(rule: Rule, trace: Trace, host: HostShape): number {
  const capacity = capacityOf(host);
  const classes = [...capacity.keys()].filter((i) => (capacity[i] ?? 0) > 0);
  const asked = (row: number): number[] => {
    const all = [trace.cpuMilli, trace.memoryMiB, trace.diskMiB, trace.networkPercent].map(
      (column) => column[row] ?? 0,
    );
    return [...all, 1000 * (trace.gpus[row] ?? 0)];
  };
  const free: number[][] = [];
  const guests: number[] = [];
  const groups: Map<number, number>[] = [];
  const hostOf = new Int32Array(trace.rows);
  const departures = new Departures();
  let endS = 0;
  for (let row = 0; row < trace.rows; row++) endS = Math.max(endS, trace.arriveS[row] ?? 0, trace.departS[row] ?? 0);
  let nowS = 0;
  let inUse = 0;
  let hostSeconds = 0;
  const goTo = (atS: number): void => {
    hostSeconds += (atS - nowS) * inUse;
    nowS = atS;
  };
  const change = (row: number, at: number, times: 1 | -1): void => {
    const amounts = asked(row);
    const there = free[at] ?? [];
    for (const i of classes) there[i] = (there[i] ?? 0) - times * (amounts[i] ?? 0);
    const before = guests[at] ?? 0;
    guests[at] = before + times;
    if (before === 0) inUse += 1;
    if (before + times === 0) inUse -= 1;
    const group = trace.group.of[row] ?? 0;
    groups[at]?.set(group, (groups[at]?.get(group) ?? 0) + times);
  };
  const choose = (row: number): number => {
    const amounts = asked(row);
    const limit = trace.maxPerHost[row] ?? 0;
    let best = -1;
    let empty = -1;
    let leastLeft = Number.POSITIVE_INFINITY;
    for (let at = 0; at < free.length; at++) {
      if (guests[at] === 0) {
        if (empty < 0) empty = at;
        continue;
      }
      const there = free[at] ?? [];
      let left = 0;
      for (const i of classes) {
        const each = (there[i] ?? 0) - (amounts[i] ?? 0);
        left = each < 0 ? Number.POSITIVE_INFINITY : left + each / (capacity[i] ?? 1);
      }
      if (left >= leastLeft) continue;
      if (limit > 0 && (groups[at]?.get(trace.group.of[row] ?? 0) ?? 0) >= limit) continue;
      best = at;
      leastLeft = left;
      if (rule === 'first fit') break;
    }
    if (best < 0) best = empty;
    if (best >= 0) return best;
    guests.push(0);
    groups.push(new Map());
    return free.push([...capacity]) - 1;
  };
  for (let row = 0; row < trace.rows; ) {
    goTo(Math.min(trace.arriveS[row] ?? 0, departures.nextS));
    while (departures.nextS <= nowS) {
      const gone = departures.pop();
      change(gone, hostOf[gone] ?? 0, -1);
    }
    for (; row < trace.rows && (trace.arriveS[row] ?? 0) <= nowS; row++) {
      const departS = trace.departS[row] ?? -1;
      if (
        departS === trace.arriveS[row] ||
        asked(row).some((each, i) => classes.includes(i) && each > (capacity[i] ?? 0))
      )
        continue;
      const at = choose(row);
      hostOf[row] = at;
      change(row, at, 1);
      if (departS >= 0) departures.push(departS, row);
    }
  }
  while (departures.size > 0) {
    goTo(departures.nextS);
    const gone = departures.pop();
    change(gone, hostOf[gone] ?? 0, -1);
  }
  goTo(endS);
  return hostSeconds / 3600;
}
