// `npm test [-- <vitest arguments>]`: installs what the tests need, runs them, and closes with `N passed, N failed` alone on a line.
// The exit code is not zero when a test failed, a file could not run, or nothing ran at all.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { debianPackages } from './debian-packages.mjs';
import {
  ensureDebianPackages,
  ensureNpmPackages,
  nodePath,
  projectRoot,
  requireNode20,
  runToEnd,
  say,
} from './setup.mjs';

requireNode20();
const words = process.argv.slice(2);
/** Checks of `npm run ci` that failed before the tests began: they count as failures in the closing line. */
const failedBefore = Number(process.env.BERTH_CI_FAILED_CHECKS ?? 0);
await ensureNpmPackages();
const packages = await ensureDebianPackages(
  debianPackages('qemu', 'network', 'libvirt', 'containers', 'tinyImage', 'debianImage', 'stores', 'tests'),
  {
    yes: words.includes('--yes'),
    purpose: 'Running every test',
  },
);
if (!packages.installed) say(`Tests that boot real guests will fail: ${packages.reason}.`);

const folder = mkdtempSync(join(tmpdir(), 'berth-test-'));
const report = join(folder, 'report.json');
const vitest = [
  'node_modules/vitest/vitest.mjs',
  'run',
  '--reporter=default',
  '--reporter=json',
  `--outputFile.json=${report}`,
];
// Tests start our programs a thousand times, and more: they are compiled once.
const env = { NODE_COMPILE_CACHE: join(projectRoot, '.berth', 'compiled'), ...process.env };
let code = await runToEnd(nodePath(), [...vitest, ...words.filter((word) => word !== '--yes')], env);
const { passed, ...read } = readReport(report);
/** What failed outside any test, such as an error that nobody caught, is in no file's count. */
const failed = read.failed === 0 && code !== 0 ? 1 : read.failed;
rmSync(folder, { recursive: true });

if (passed + failed === 0) say('No test ran.');
if (code === 0 && (passed + failed === 0 || failed > 0)) code = 1;
say(`${passed} passed, ${failed + failedBefore} failed`);
process.exit(code);

/** A file that could not be loaded has no tests to count: it counts as one failure itself. */
function readReport(path) {
  try {
    const results = JSON.parse(readFileSync(path, 'utf8'));
    const broken = results.testResults.filter(
      (file) => file.status === 'failed' && !file.assertionResults.some((test) => test.status === 'failed'),
    );
    return { passed: results.numPassedTests, failed: results.numFailedTests + broken.length };
  } catch (error) {
    say(`The test runner left no report (${error.message}).`);
    return { passed: 0, failed: 1 };
  }
}
