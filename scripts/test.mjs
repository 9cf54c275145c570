// `npm test [-- [--tiers quick,real,long] <vitest arguments>]`: installs what the tests need, runs them, and closes with
// `N passed, N failed` alone on a line. The exit code is not zero when a test failed, a file could not run, or nothing ran at all.

import { debianPackages } from './debian-packages.mjs';
import { ensureDashboard, ensureDebianPackages, ensureNpmPackages, fail, requireNode20, say } from './setup.mjs';
import { runTier } from './tests/run-tests.mjs';
import { tiers } from './tests/tiers.mjs';

requireNode20();
const { names, yes, words } = read(process.argv.slice(2));
await ensureNpmPackages();
if (names.some((name) => name !== 'quick')) {
  const packages = await ensureDebianPackages(
    debianPackages(
      'qemu',
      'network',
      'firmware',
      'libvirt',
      'containers',
      'tinyImage',
      'debianImage',
      'jobs',
      'package',
      'images',
      'stores',
      'broker',
      'provisioners',
      'tests',
    ),
    { yes, purpose: 'Running the tests with real parts' },
  );
  await ensureDashboard();
  if (!packages.installed) say(`Tests that boot real guests will fail: ${packages.reason}.`);
}

let passed = 0;
let failed = 0;
const again = [];
for (const name of names) {
  const tier = await runTier(name, words);
  passed += tier.passed;
  failed += tier.failed;
  again.push(...tier.again);
  if (tier.stopped) break; // by a signal: the rest is not wanted either
}
if (again.length > 0) say('\nFailed once, and passed when run again alone:');
for (const name of again) say(`  ${name}`);
if (passed + failed === 0) say('No test ran.');
say(`${passed} passed, ${failed} failed`);
process.exit(passed + failed === 0 || failed > 0 ? 1 : 0);

/** Which tiers: those of `--tiers`, all of them when files are named, else the first two. */
function read(args) {
  const at = args.indexOf('--tiers');
  const [, asked] = at < 0 ? [] : args.splice(at, 2);
  const rest = args.filter((word) => word !== '--yes');
  const known = tiers.map(({ name }) => name);
  const filesNamed = rest.some((word) => !word.startsWith('-'));
  const names = asked?.split(',') ?? (filesNamed ? known : ['quick', 'real']);
  const unknown = names.filter((name) => !known.includes(name));
  if (unknown.length > 0) fail(`--tiers has ${unknown.join(', ')}; known are ${known.join(', ')}`);
  return { names, yes: args.includes('--yes'), words: rest };
}
