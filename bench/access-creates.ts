// Creates as fast as a server takes them, by clients that each wait for their answer. Rounds are short, so that two servers or callers that
// take turns have the same machine.

import { cpuMs } from './process-cpu.ts';
import { connectRaw, encodeRequest, type Target } from './raw-http.ts';
import { type BenchRow, median } from './row.ts';

export const hosts = 100;
const clients = 16;
const roundMs = 1_000;
const warmRounds = 2;

/** A caller of a server. */
export interface Side {
  readonly target: Target;
  /** Of the server. */
  readonly pid: number;
  /** Names its creates; differs from those of other sides of the same server. */
  readonly name: string;
  readonly project?: string;
}

interface Round {
  readonly perSecond: number;
  /** Of the server: what it used of both processors, whatever else ran on them. */
  readonly cpuMsEach: number;
}

/** What `side` costs against `plain`, in percent: of creates per second, and of the server's CPU time per create. Both take turns. */
export async function overheadOf(
  side: Side,
  plain: Side,
  rounds: number,
): Promise<{ readonly ratePct: number; readonly cpuPct: number }> {
  for (let round = 0; round < warmRounds; round++)
    for (const each of [side, plain]) await createsOf(each, `warm${round}`);
  const [rates, times]: [number[], number[]] = [[], []];
  for (let round = 0; round < rounds; round++) {
    // Each goes first in half of the rounds: what changes with time changes for both.
    const order = round % 2 === 0 ? [side, plain] : [plain, side];
    const done = new Map<Side, Round>();
    for (const each of order) done.set(each, await createsOf(each, `r${round}`));
    const [own, other] = [done.get(side), done.get(plain)];
    if (!own || !other) continue;
    rates.push(own.perSecond / other.perSecond);
    times.push(own.cpuMsEach / other.cpuMsEach);
    process.stderr.write(`  ${told(side, own)}; ${told(plain, other)}\n`);
  }
  return { ratePct: 100 * (1 - median(rates)), cpuPct: 100 * (median(times) - 1) };
}

function told({ name }: Side, { perSecond, cpuMsEach }: Round): string {
  return `${name}: ${Math.round(perSecond)} creates/s, ${Math.round(1000 * cpuMsEach)} µs of CPU each`;
}

/** `NAME_pct`, of the rate, and `NAME_cpu_pct`, of the server's CPU time: on a machine with other work, the second is of the code alone. */
export function overheadRows(name: string, { ratePct, cpuPct }: { ratePct: number; cpuPct: number }): BenchRow[] {
  const row = { suite: 'access', unit: '%', better: 'lower', goal: 3, limit: 10 } as const;
  return [
    { ...row, name: `${name}_pct`, value: ratePct, ratio: ratePct / row.limit },
    { ...row, name: `${name}_cpu_pct`, value: cpuPct, ratio: cpuPct / row.limit },
  ];
}

/** Every client sends its next create when the one before is answered. */
async function createsOf({ target, pid, name, project = 'default' }: Side, round: string): Promise<Round> {
  const open = await Promise.all(Array.from({ length: clients }, () => connectRaw(target.url)));
  const startedAt = performance.now();
  const cpuBefore = cpuMs(pid);
  let sent = 0;
  await Promise.all(
    open.map(
      (connection) =>
        new Promise<void>((resolve, reject) => {
          const next = (): void => {
            if (performance.now() - startedAt > roundMs) return resolve();
            const body = {
              metadata: { name: `${name}-${round}-${sent++}`, project },
              spec: { image: 'bench', cpus: 1, memoryMiB: 64 },
            };
            connection.send(encodeRequest(target, 'POST', '/v1/instances', body), ({ status }) =>
              status === 201 ? next() : reject(new Error(`the server answered ${status}`)),
            );
          };
          next();
        }),
    ),
  );
  const tookMs = performance.now() - startedAt;
  const cpuMsEach = (cpuMs(pid) - cpuBefore) / sent;
  for (const connection of open) connection.close();
  return { perSecond: (sent * 1000) / tookMs, cpuMsEach };
}
