// `npm run quickstart [-- --yes --once --driver qemu|libvirt|fake --image tiny|debian-12 --accelerator auto|kvm|tcg]`: from a fresh clone to a running VM. Installs what is missing, then hands
// over to `berth quickstart`; where QEMU cannot be had it says so and the same runs on the fake driver.

import { debianPackages } from './debian-packages.mjs';
import {
  ensureDashboard,
  ensureDebianPackages,
  ensureNpmPackages,
  nodePath,
  requireNode20,
  runToEnd,
  say,
} from './setup.mjs';

requireNode20();
const args = process.argv.slice(2);
const help = args.includes('--help') || args.includes('-h');
const flag = (name) =>
  args.find((word, index) => args[index - 1] === name) ??
  args.find((word) => word.startsWith(`${name}=`))?.slice(name.length + 1);
const driver = flag('--driver');
const groups = [
  'qemu',
  ...(driver === 'libvirt' ? ['libvirt'] : []),
  ...(flag('--image') === 'debian-12' ? ['debianImage', 'login'] : ['tinyImage']),
];

await ensureNpmPackages();
if (!help && driver !== 'fake') {
  const packages = await ensureDebianPackages(debianPackages(...groups), {
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
if (!help) await ensureDashboard();
process.exit(await runToEnd(nodePath(), ['src/main.ts', 'quickstart', ...args]));
