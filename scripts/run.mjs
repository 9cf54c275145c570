// `node scripts/run.mjs <file> [arguments]`: makes the npm packages present, then runs the file on the Node 24 they bring.
// So every npm script works in a fresh clone, on any Node >= 20.

import { ensureNpmPackages, nodePath, requireNode20, runToEnd } from './setup.mjs';

requireNode20();
await ensureNpmPackages();
process.exit(await runToEnd(nodePath(), process.argv.slice(2)));
