// `npm run crucible`: real processes in network namespaces of their own under real faults, judged by the simulator's checkers.
//
// The runner works in network, mount and process namespaces that end with it: whatever it made (processes, networks, mounts, loop
// devices) is gone when it is, however it ends. It needs root for that, and touches nothing of the machine's own network.

import { spawn } from 'node:child_process';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { command } from './daemon.ts';
import { kindsFor } from './faults.ts';
import { runStore, type StoreRunResult } from './run-store.ts';
import type { StoreKind } from './stores.ts';
import { describeError } from '../../src/base/log.ts';
import { system } from '../../src/base/system.ts';

const kinds: readonly StoreKind[] = ['postgres', 'etcd', 'sqlite'];
/** Default duration for each store. */
const defaultSeconds: Readonly<Record<StoreKind, number>> = { postgres: 90, etcd: 90, sqlite: 30 };

const usageText = `usage: npm run crucible -- [--store ${kinds.join('|')}] [--minutes N] [--seed N] [--faults a,b] [--json] [--keep]\n`;

const helpText = `${usageText}
Real control planes, agents and stores in network namespaces under real faults, judged by the simulator's checkers. It needs Linux and
root, touches nothing of the machine's own network, and leaves nothing behind but the folder of a run that failed.

  --store KINDS   which stores, in turn (default: all)
  --minutes N     of faults on each (default: ${kinds.map((kind) => `${kind} ${defaultSeconds[kind]} s`).join(', ')}; rest and judgement come after it)
  --seed N        the same work and the same faults again
  --faults a,b    only these: ${[...new Set(kinds.flatMap(kindsFor))].join(', ')}
  --json          a line for each store
  --keep          keeps the record and all logs of a good run, too

Exit codes: 0 all invariants held, 1 one did not, or too little happened, 2 the command is not right. More: docs/crucible.md
`;

function usage(fault: string): never {
  process.stderr.write(`${fault}\n${usageText}`);
  process.exit(2);
}

function parseFlags() {
  try {
    return parseArgs({
      args: process.argv.slice(2),
      options: {
        store: { type: 'string' },
        minutes: { type: 'string' },
        seed: { type: 'string' },
        faults: { type: 'string' },
        json: { type: 'boolean', default: false },
        keep: { type: 'boolean', default: false },
        inside: { type: 'string' },
        help: { type: 'boolean', default: false },
      },
    }).values;
  } catch (error) {
    return usage(describeError(error));
  }
}

const flags = parseFlags();
if (flags.help) {
  process.stdout.write(helpText);
  process.exit(0);
}

const say = (line: string): void => {
  (flags.json ? process.stderr : process.stdout).write(`${line}\n`);
};

function chosenStores(): readonly StoreKind[] {
  const { store } = flags;
  if (store === undefined) return kinds;
  const chosen = kinds.filter((kind) => store.split(',').includes(kind));
  return chosen.length === 0 ? usage(`there is no store "${store}"`) : chosen;
}

function chosenNumber(name: 'minutes' | 'seed'): number | undefined {
  const text = flags[name];
  if (text === undefined) return undefined;
  const number = Number(text);
  return Number.isFinite(number) && number >= 0 ? number : usage(`--${name} ${text} is no number`);
}

function chosenFaults(): readonly string[] | undefined {
  const faults = flags.faults?.split(',');
  const known = new Set(kinds.flatMap(kindsFor));
  for (const fault of faults ?? [])
    if (!known.has(fault)) usage(`there is no fault "${fault}"; there are: ${[...known].join(', ')}`);
  return faults;
}

// ── outside: one namespace for each store, one after the other ──────────────────────────────────────────────────────

async function outside(): Promise<number> {
  if (process.getuid?.() !== 0) usage('the crucible needs root: it makes network namespaces and mounts disks');
  const stores = chosenStores();
  const minutes = chosenNumber('minutes');
  const seed = chosenNumber('seed') ?? Math.floor(Math.random() * 1_000_000);
  const faults = chosenFaults();
  const interrupted = system.terminationSignal();
  removeAbandoned();
  let failed = false;
  for (const store of stores) {
    const folder = mkdtempSync(join(tmpdir(), 'berth-crucible-'));
    chmodSync(folder, 0o711); // PostgreSQL runs as a user of its own
    const durationMs = minutes === undefined ? defaultSeconds[store] * 1000 : (minutes * 60_000) / stores.length;
    const plan = join(folder, 'plan.json');
    writeFileSync(plan, JSON.stringify({ owner: process.pid, store, seed, durationMs, faults, folder }));
    const own = ['--net', '--mount', '--pid', '--fork', '--kill-child', '--mount-proc'];
    // A shell as the first process of the namespace: it takes leave of orphans.
    const words = [process.execPath, import.meta.filename, '--inside', plan, ...(flags.json ? ['--json'] : [])];
    const child = spawn(
      'setpriv',
      ['--pdeathsig', 'KILL', 'unshare', ...own, 'sh', '-c', '"$@"; exit $?', 'sh', ...words],
      { stdio: ['ignore', 'inherit', 'inherit'] },
    );
    // Its end is the end of everything in there.
    const end = (): void => void child.kill('SIGKILL');
    interrupted.addEventListener('abort', end, { once: true });
    const code = await new Promise<number>((resolve) => child.on('close', (exit) => resolve(exit ?? 1)));
    interrupted.removeEventListener('abort', end);
    if (interrupted.aborted) {
      rmSync(folder, { recursive: true });
      say('interrupted; nothing is left of it');
      return 130;
    }
    rmSync(plan); // from here on the folder is somebody's to look at
    failed ||= code !== 0;
    if (code === 0 && !flags.keep) rmSync(folder, { recursive: true });
    else say(`the record and all logs are in ${folder}`);
    if (code !== 0) {
      const more = `${minutes === undefined ? '' : ` --minutes ${minutes / stores.length}`}${faults ? ` --faults ${faults.join(',')}` : ''}`;
      say(`see it again: npm run crucible -- --store ${store} --seed ${seed}${more}`);
    }
  }
  return failed ? 1 : 0;
}

/** Folders of runs that were killed. */
function removeAbandoned(): void {
  for (const name of readdirSync(tmpdir())) {
    const folder = join(tmpdir(), name);
    if (!name.startsWith('berth-crucible-') || !existsSync(join(folder, 'plan.json'))) continue;
    const { owner } = JSON.parse(readFileSync(join(folder, 'plan.json'), 'utf8'));
    if (!system.signal(owner, 0)) rmSync(folder, { recursive: true });
  }
}

// ── inside ──────────────────────────────────────────────────────────────────────────────────────────────────────────

async function inside(planFile: string): Promise<void> {
  const plan = JSON.parse(readFileSync(planFile, 'utf8'));
  await command('mount', '-t', 'tmpfs', 'tmpfs', '/run');
  mkdirSync('/run/netns');
  const startedMs = performance.now();
  const result = await runStore({
    ...plan,
    signal: system.terminationSignal(),
    say: (line) => say(`${((performance.now() - startedMs) / 1000).toFixed(1).padStart(7)} s  ${line}`),
  });
  if (flags.json) process.stdout.write(`${JSON.stringify(result)}\n`);
  else process.stdout.write(tableOf(result));
  // Whatever still runs ends with this namespace.
  process.exit(result.violations.length > 0 || result.idle.length > 0 ? 1 : 0);
}

const invariants: Readonly<Record<number, string>> = {
  1: 'no provider beyond its capacity',
  2: 'one copy of exclusive instances',
  3: 'nothing accepted is lost',
  4: 'one key, one effect',
  5: 'room is held exactly as long',
  6: 'no gaps; watches see all, once, in order',
  7: 'nothing falls; stale reports change nothing',
  8: 'no traces at rest; berth verify finds nothing',
  9: 'restarts change nothing but time',
  0: 'others: fail-over, eligible hosts, churn, quota, limits',
};

function tableOf(result: StoreRunResult): string {
  const { store, seed, seconds, failOvers, watches, violations } = result;
  const rows: (readonly [string, string])[] = [
    [
      'faults',
      Object.entries(result.faults)
        .map(([kind, count]) => `${kind} ${count}`)
        .join(', '),
    ],
    [
      'operations',
      `${result.operations} answered, ${result.operationsPerSecond} a second; ${result.answeredCreates} creates`,
    ],
    [
      'log',
      `${result.revisions} revisions; ${watches.changes} changes seen by ${watches.count} watches, ${watches.compacted} compacted`,
    ],
    [
      'leaders',
      `${result.leaderTerms} terms; fail-over p50 ${failOvers.p50Ms ?? '-'} ms, p99 ${failOvers.p99Ms ?? '-'} ms of ${failOvers.clean} clean, ${failOvers.disturbed} disturbed`,
    ],
    ['hosts', `called lost ${result.hostsLost} times; ${result.restarts} instances started anew for it`],
    [
      'rest',
      `after ${(result.restMs / 1000).toFixed(1)} s; ${result.backups} backups made meanwhile${result.restored ? ', the last restored at the end' : ''}`,
    ],
  ];
  const lines = rows.map(([name, text]) => `  ${name.padEnd(12)}${text}`);
  const order = [1, 2, 3, 4, 5, 6, 7, 8, 9, 0];
  for (const number of order) {
    const broken = violations.filter(({ invariant }) => invariant === number);
    lines.push(
      `  ${`invariant ${number}`.padEnd(12)} ${broken.length === 0 ? 'holds ' : 'BROKEN'} ${invariants[number]}`,
    );
    for (const { message } of broken.slice(0, 5)) lines.push(`               ${message.slice(0, 400)}`);
    if (broken.length > 5) lines.push(`               and ${broken.length - 5} more`);
  }
  for (const reason of result.idle) lines.push(`  void: ${reason}`);
  const verdict = violations.length > 0 ? 'FAILED' : result.idle.length > 0 ? 'VOID' : 'ok';
  return `\ncrucible over ${store}, seed ${seed}, ${seconds} s: ${verdict}\n${lines.join('\n')}\n\n`;
}

if (flags.inside === undefined) process.exit(await outside());
else await inside(flags.inside);
