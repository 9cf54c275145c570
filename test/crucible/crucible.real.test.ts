// The shortest crucible that is worth its name: real processes in network namespaces over PostgreSQL, with the leader killed, a host cut
// off and the power of the database cut. `npm run crucible` is the whole.

import { execFile, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { promisify } from 'node:util';
import { expect, it } from 'vitest';
import { postgresPrograms } from '../../src/store/postgres/test-postgres.ts';

const main = new URL('./main.ts', import.meta.url).pathname;
const faults = 'kill-leader,cut-host,power-cut';
const words = ['--store', 'postgres', '--minutes', '0.1', '--seed', '3', '--faults', faults, '--json'];

function whyNot(): string | undefined {
  if (process.getuid?.() !== 0) return 'only root may make network namespaces and mount disks';
  if (postgresPrograms === null) return 'PostgreSQL is not installed';
  if (!existsSync('/dev/loop-control')) return 'there are no loop devices here to cut the power of';
  // In a chroot neither unshare nor ip can keep mounts apart, for its root is no mount point.
  return spawnSync('unshare', ['--mount', 'true']).status === 0
    ? undefined
    : 'there are no mount namespaces to be had here';
}

const reason = whyNot();

it.skipIf(reason !== undefined)(
  `loses nothing when leader, host and power fail${reason ? ` (${reason})` : ''}`,
  async () => {
    // It dies with the test, however that ends, and takes everything it made with it.
    const argv = ['--pdeathsig', 'KILL', process.execPath, main, ...words];
    // A run that fails says why on its standard output, too.
    const { stdout, stderr } = await promisify(execFile)('setpriv', argv).catch((failed) => failed);
    expect(stdout, stderr).toMatch(/^{/);
    const result = JSON.parse(stdout);
    expect(result.violations, stderr).toEqual([]);
    expect(result.idle).toEqual([]);
    expect(Object.keys(result.faults).sort()).toEqual(faults.split(',').sort());
    expect(result.failOvers.clean).toBeGreaterThan(0);
  },
  240_000,
);
