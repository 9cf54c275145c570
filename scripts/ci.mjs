// `npm run ci`: every check, then `npm test`, then the long tests related to the change as far as time allows, even when something failed
// before, so that one run shows everything. Closes as `npm test` does: `N passed, N failed`, a failed check counting as one failure.
//
// BERTH_CI_SINCE names the commit before the change (default: HEAD^). BERTH_CI_MINUTES is the time after which no long test begins
// (default 18: with the last of them, and an installation, a run stays below half an hour).

import { spawn } from 'node:child_process';
import { ensureNpmPackages, nodePath, projectRoot, requireNode20, runToEnd, say } from './setup.mjs';
import { relatedLongTests, runWithin } from './tests/run-related.mjs';

const startedAtMs = Date.now();
const since = process.env.BERTH_CI_SINCE ?? 'HEAD^';
const minutes = Number(process.env.BERTH_CI_MINUTES ?? 18);

requireNode20();
await ensureNpmPackages();
// check.ts exits with the number of checks that failed.
const failedChecks = await runToEnd(nodePath(), ['scripts/check.ts']);
if (failedChecks >= 126) process.exit(failedChecks); // stopped by a signal, or not run at all
say('');
const tests = await npmTest(process.argv.slice(2));
if (tests.code >= 126) process.exit(tests.code);

const related = relatedLongTests(since);
say(`\n${related.length} files of long tests are related to the change since ${since}.`);
const long = await runWithin(related, startedAtMs + minutes * 60_000);
if (long.leftOut.length > 0)
  say(`\nLeft out after ${minutes} minutes (npm run test:long runs them): ${long.leftOut.join(', ')}`);

const failed = failedChecks + tests.failed + long.failed;
say(`${tests.passed + long.passed} passed, ${failed} failed`);
process.exit(failed > 0 || tests.code !== 0 ? 1 : 0);

/** `npm test` with its output shown, and the counts of its closing line. */
function npmTest(words) {
  return new Promise((resolve) => {
    const child = spawn(nodePath(), ['scripts/test.mjs', ...words], {
      cwd: projectRoot,
      stdio: ['inherit', 'pipe', 'inherit'],
    });
    const stop = (signal) => child.kill(signal);
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, stop);
    let last = '';
    child.stdout.setEncoding('utf8').on('data', (text) => {
      process.stdout.write(text);
      last = (last + text).slice(-200);
    });
    child.on('close', (code) => {
      const closing = /(?:^|\n)(\d+) passed, (\d+) failed\n$/.exec(last);
      const failed = Number(closing?.[2] ?? 0);
      const ended = code ?? 130;
      resolve({
        code: ended,
        passed: Number(closing?.[1] ?? 0),
        failed: failed === 0 && ended !== 0 ? 1 : failed,
      });
    });
  });
}
