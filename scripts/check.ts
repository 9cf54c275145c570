// `npm run check`: types, lint, format, house rules, dead code and OpenAPI drift, as many at a time as there are cores. One line
// each; what a failed one printed follows. Exits with the number of checks that failed. It never changes a file.

import { spawn } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { fileURLToPath } from 'node:url';

interface Check {
  readonly name: string;
  readonly command: readonly [string, ...string[]];
  /** What to type when it fails. */
  readonly remedy: string;
}

interface Outcome {
  readonly check: Check;
  readonly passed: boolean;
  readonly durationMs: number;
  readonly output: string;
}

// The slow ones first, so that the cores end together.
const checks: readonly Check[] = [
  { name: 'types', command: ['tsc', '-p', '.', '--pretty', 'false'], remedy: 'fix the types above' },
  { name: 'web types', command: ['tsc', '-p', 'web', '--pretty', 'false'], remedy: 'fix the types above' },
  {
    name: 'lint',
    command: ['oxlint', '--type-aware', '--format=unix'],
    remedy: 'fix the lines above; rules are in .oxlintrc.json',
  },
  {
    name: 'dead code',
    command: ['knip', '--no-progress', '--no-config-hints'],
    remedy: 'remove what nothing uses, or stop exporting it',
  },
  {
    name: 'house rules',
    command: ['vitest', 'run', '--reporter=dot', '--no-color', 'src/tidy.test.ts'],
    remedy: 'see docs/ARCHITECTURE.md, "Who may import whom"',
  },
  {
    name: 'OpenAPI',
    command: ['node', 'scripts/openapi.ts', '--check'],
    remedy: 'npm run openapi, and commit docs/openapi.json',
  },
  {
    name: 'board',
    command: ['node', 'scripts/grafana-board.ts', '--check'],
    remedy: 'node scripts/grafana-board.ts, and commit packaging/grafana/berth.json',
  },
  {
    name: 'doc links',
    command: ['node', 'scripts/docs-site/site.ts', '--check'],
    remedy: 'mend the links above',
  },
  { name: 'format', command: ['biome', 'format', '--colors=off', '--reporter=summary', '.'], remedy: 'npm run format' },
];

const root = fileURLToPath(new URL('..', import.meta.url));
const waiting = [...checks];
const failed: Outcome[] = [];
await Promise.all(Array.from({ length: availableParallelism() }, () => runWaiting()));
process.exitCode = failed.length;

async function runWaiting(): Promise<void> {
  for (let check = waiting.shift(); check; check = waiting.shift()) {
    const outcome = await run(check);
    const seconds = (outcome.durationMs / 1000).toFixed(1);
    console.log(`${outcome.passed ? 'ok  ' : 'FAIL'}  ${check.name.padEnd(11)}  ${seconds.padStart(5)} s`);
    if (outcome.passed) continue;
    failed.push(outcome);
    console.log(`${firstLines(outcome.output.trim(), 60)}\n-> ${check.remedy}\n`);
  }
}

function firstLines(text: string, limit: number): string {
  const lines = text.split('\n');
  if (lines.length <= limit) return text;
  return `${lines.slice(0, limit).join('\n')}\n... and ${lines.length - limit} lines more`;
}

function run(check: Check): Promise<Outcome> {
  const startedAtMs = performance.now();
  const [command, ...args] = check.command;
  const path = `${root}node_modules/.bin:${process.env['PATH'] ?? ''}`;
  return new Promise((resolve) => {
    const child = spawn(command, args, {
      cwd: root,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...process.env, PATH: path, NO_COLOR: '1' },
    });
    let output = '';
    const take = (text: Buffer): void => {
      output += text.toString();
    };
    const finish = (passed: boolean): void =>
      resolve({ check, passed, durationMs: performance.now() - startedAtMs, output });
    child.stdout.on('data', take);
    child.stderr.on('data', take);
    child.on('error', (error) => {
      output += error.message;
      finish(false);
    });
    child.on('close', (code) => finish(code === 0));
  });
}
