// `npm run quickstart [-- --yes --once --driver fake|qemu]`: from a fresh clone to a running VM. Installs what is missing, then hands
// over to `berth quickstart`; where QEMU cannot be had it says so and the same runs on the fake driver.

import { debianPackages } from './debian-packages.mjs';
import { ensureDebianPackages, ensureNpmPackages, nodePath, requireNode20, runToEnd, say } from './setup.mjs';

requireNode20();
const args = process.argv.slice(2);
const help = args.includes('--help') || args.includes('-h');
const driver =
  args.find((word, index) => args[index - 1] === '--driver') ??
  args.find((word) => word.startsWith('--driver='))?.slice(9);

await ensureNpmPackages();
if (!help && driver !== 'fake') {
  const packages = await ensureDebianPackages(debianPackages('qemu', 'tinyImage'), {
    yes: args.includes('--yes') || args.includes('-y'),
    purpose: 'Booting a real virtual machine',
  });
  if (!packages.installed) {
    say(`No QEMU: ${packages.reason}.`);
    if (driver === undefined) {
      say('Going on with the fake driver: everything is real but the guest itself.\n');
      args.push('--driver', 'fake');
    }
  }
}
process.exit(await runToEnd(nodePath(), ['src/main.ts', 'quickstart', ...args]));
