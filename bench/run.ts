// npm run bench -- SUITE [--json]: measures and prints; never a test. With --json one object a line on standard output.

import type { BenchRow } from './row.ts';

const suites = {
  access: () => import('./access.ts'),
  dashboard: () => import('./dashboard.ts'),
  edges: () => import('./edges.ts'),
  guests: () => import('./guests.ts'),
  jobs: () => import('./jobs.ts'),
  lifecycle: () => import('./lifecycle.ts'),
  main: () => import('./main.ts'),
  memory: () => import('./memory.ts'),
  packing: () => import('./packing.ts'),
  placement: () => import('./placement.ts'),
  scheduler: () => import('./scheduler.ts'),
  scale: () => import('./scale.ts'),
  sim: () => import('./sim-speed.ts'),
  store: () => import('./store.ts'),
};

const names = process.argv.slice(2).filter((word) => !word.startsWith('--'));
const json = process.argv.includes('--json');
const known = Object.keys(suites).join(', ');
const unknown = names.find((name) => !Object.hasOwn(suites, name));
if (unknown !== undefined) {
  console.error(`there is no suite "${unknown}"; known: ${known}`);
  process.exit(2);
}

const rows: BenchRow[] = [];
for (const [name, load] of Object.entries(suites)) {
  if (names.length > 0 ? !names.includes(name) : name !== 'main') continue;
  process.stderr.write(`suite ${name} …\n`);
  const { run } = await load();
  await run((row) => {
    rows.push(row);
    if (json) console.log(JSON.stringify(row));
    else process.stderr.write(`  ${row.name}\n`);
  });
}
if (!json) printTable(rows);

function printTable(all: readonly BenchRow[]): void {
  const short = (value: number | undefined): string => (value === undefined ? '' : value.toPrecision(4));
  const head = ['SUITE', 'NAME', 'VALUE', 'UNIT', 'GOAL', 'LIMIT', 'RATIO', 'MET'];
  const lines = all.map((row) => [
    row.suite,
    row.name,
    short(row.value),
    row.unit,
    `${row.better === 'lower' ? '≤' : '≥'} ${row.goal}`,
    short(row.limit ?? row.peer),
    short(row.ratio),
    (row.better === 'lower' ? row.value <= row.goal : row.value >= row.goal) ? 'yes' : 'NO',
  ]);
  const widths = head.map((title, i) => Math.max(title.length, ...lines.map((line) => line[i]?.length ?? 0)));
  for (const line of [head, ...lines])
    console.log(
      line
        .map((cell, i) => cell.padEnd(widths[i] ?? 0))
        .join('  ')
        .trimEnd(),
    );
}
