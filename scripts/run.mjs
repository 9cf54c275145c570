// `node scripts/run.mjs [--needs GROUP,GROUP] [--web] <file> [arguments]`: makes the npm packages present, the Debian packages of those groups
// (debian-packages.json), and with --web the dashboard, then runs the file on the Node 24 they bring. So every npm script works in a fresh clone, on any Node >= 20.

import { debianPackages } from './debian-packages.mjs';
import {
  ensureDashboard,
  ensureDebianPackages,
  ensureNpmPackages,
  fail,
  nodePath,
  requireNode20,
  runToEnd,
} from './setup.mjs';

requireNode20();
const words = process.argv.slice(2);
const groups = words[0] === '--needs' ? words.splice(0, 2)[1].split(',') : [];
const web = words[0] === '--web' && words.shift() !== undefined;
await ensureNpmPackages();
const packages = await ensureDebianPackages(debianPackages(...groups), {
  purpose: `npm run ${process.env.npm_lifecycle_event ?? words[0]}`,
});
if (!packages.installed) fail(packages.reason);
if (web) await ensureDashboard();
process.exit(await runToEnd(nodePath(), words));
