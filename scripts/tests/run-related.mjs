// The long tests that a change touches, within a time budget: for continuous integration. Files run two at a time, each in a process of its
// own, so that none begins when the budget is spent. What is left out is named.

import { spawn, spawnSync } from 'node:child_process';
import { availableParallelism } from 'node:os';
import { relative } from 'node:path';
import { nodePath, projectRoot, say } from '../setup.mjs';
import { readDurations } from './durations.mjs';

/** When one of these changed, every long test is related. */
const everything = /^(package(-lock)?\.json|vitest\.config\.ts|scripts\/.*|\.ci\/.*)$/;

/** The long test files related to the commits since `since`, by vitest's graph of imports. All of them where git does not know `since`. */
export function relatedLongTests(since) {
  const changed = spawnSync('git', ['diff', '--name-only', since, 'HEAD'], { cwd: projectRoot, encoding: 'utf8' });
  const all = changed.status !== 0 || changed.stdout.split('\n').some((path) => everything.test(path));
  const words = ['list', '--project=long', '--filesOnly', '--json', ...(all ? [] : [`--changed=${since}`])];
  const listed = spawnSync(nodePath(), ['node_modules/vitest/vitest.mjs', ...words], {
    cwd: projectRoot,
    encoding: 'utf8',
  });
  if (listed.status !== 0) throw new Error(`vitest cannot list the long tests: ${listed.stderr.trim()}`);
  const durations = readDurations(projectRoot);
  return JSON.parse(listed.stdout)
    .map(({ file }) => relative(projectRoot, file))
    .toSorted((a, b) => (durations[b] ?? 0) - (durations[a] ?? 0) || (a < b ? -1 : 1));
}

/** Runs files until `deadlineMs` (of Date.now()), then begins no more. Resolves with `{ passed, failed, leftOut }`. */
export async function runWithin(files, deadlineMs) {
  const waiting = [...files];
  const counts = { passed: 0, failed: 0 };
  const work = async () => {
    while (waiting.length > 0 && Date.now() < deadlineMs) {
      const { passed, failed } = await runFile(waiting.shift());
      counts.passed += passed;
      counts.failed += failed;
    }
  };
  await Promise.all(Array.from({ length: Math.max(2, availableParallelism()) }, work));
  return { ...counts, leftOut: waiting };
}

/** One file, as `npm test` runs it; its output is shown when it ended. */
function runFile(path) {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, ['scripts/test.mjs', '--yes', '--tiers', 'long', path], {
      cwd: projectRoot,
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      output += text;
    });
    child.on('error', (error) => {
      output += `cannot run ${path}: ${error.message}\n`;
    });
    child.on('close', (code) => {
      const lines = output.trimEnd().split('\n');
      const closing = /^(\d+) passed, (\d+) failed$/.exec(lines.at(-1) ?? '');
      say(lines.slice(0, closing ? -1 : undefined).join('\n'));
      const failed = Number(closing?.[2] ?? 0);
      resolve({ passed: Number(closing?.[1] ?? 0), failed: failed === 0 && code !== 0 ? 1 : failed });
    });
  });
}
