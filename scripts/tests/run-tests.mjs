// Runs test files with vitest and counts what passed. Files with a failure run once more, alone: a test that then passes is named, so that
// it is not overlooked, and does not fail the run. A failure that stays is a failure.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { nodePath, projectRoot, runToEnd, say } from '../setup.mjs';
import { keepDurations } from './durations.mjs';
import { readReport } from './report.mjs';

/** More files than this do not fail by chance: they do not run again. */
const filesAgainMax = 6;

/** Runs one tier with vitest's own arguments. Resolves with `{ passed, failed, again, stopped }`; `again` names what passed only the second time. */
export async function runTier(tier, words) {
  const first = await runVitest(tier, words);
  const failing = first.files.filter(({ failed }) => failed > 0);
  const countable = failing.reduce((total, { failed }) => total + failed, 0) === first.failed;
  if (first.stopped || failing.length === 0 || failing.length > filesAgainMax || !countable) return closed(first);

  say(`\nOnce more, alone: ${failing.map(({ path }) => path).join(', ')}\n`);
  const second = await runVitest(tier, ['--maxWorkers=1', ...failing.map(({ path }) => path)]);
  const stayed = new Map(second.files.map((file) => [file.path, file]));
  const passed = first.passed - failing.reduce((total, file) => total + file.passed, 0) + second.passed;
  const again = failing
    .filter(({ path }) => stayed.get(path)?.failed === 0)
    .flatMap(({ path, failures }) => (failures.length > 0 ? failures.map((name) => `${path}: ${name}`) : [path]));
  return { passed, failed: second.failed, again, stopped: second.stopped };
}

function closed({ passed, failed, stopped }) {
  return { passed, failed, again: [], stopped };
}

async function runVitest(tier, words) {
  const folder = mkdtempSync(join(tmpdir(), 'berth-test-'));
  const report = join(folder, 'report.json');
  // Tests start our programs a thousand times, and more: they are compiled once.
  const env = { NODE_COMPILE_CACHE: join(projectRoot, '.berth', 'compiled'), ...process.env };
  const code = await runToEnd(
    nodePath(),
    [
      'node_modules/vitest/vitest.mjs',
      'run',
      `--project=${tier}`,
      '--passWithNoTests',
      '--reporter=default',
      '--reporter=json',
      `--outputFile.json=${report}`,
      ...words,
    ],
    env,
  );
  const read = readReport(report, projectRoot);
  rmSync(folder, { recursive: true });
  if (read.missing) say(`The test runner left no report (${read.missing}).`);
  keepDurations(projectRoot, read.durations);
  // What failed outside any test, such as an error that nothing caught, is in no file's count.
  const failed = read.failed === 0 && code !== 0 ? 1 : read.failed;
  return { ...read, failed, stopped: code >= 126 };
}
