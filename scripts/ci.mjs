// `npm run ci`: every check, then every test, even when a check failed, so that one run shows everything. Closes as `npm test` does:
// `N passed, N failed`, a failed check counting as one failure.

import { ensureNpmPackages, nodePath, requireNode20, runToEnd, say } from './setup.mjs';

requireNode20();
await ensureNpmPackages();
// check.ts exits with the number of checks that failed.
const failedChecks = await runToEnd(nodePath(), ['scripts/check.ts']);
if (failedChecks >= 126) process.exit(failedChecks); // stopped by a signal, or not run at all
say('');
const env = { ...process.env, BERTH_CI_FAILED_CHECKS: String(failedChecks) };
const tests = await runToEnd(nodePath(), ['scripts/test.mjs', ...process.argv.slice(2)], env);
process.exit(failedChecks > 0 || tests !== 0 ? 1 : 0);
