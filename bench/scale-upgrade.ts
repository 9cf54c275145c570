// The longest time in which a client that knows all three servers has no request answered, while they are upgraded one after the other: the
// larger of that for reads and for writes.

import { join } from 'node:path';
import { buildNext, buildReleased } from '../test/upgrade/built-package.ts';
import { startLoad, UpgradedFleet } from '../test/upgrade/rolling-upgrade.ts';
import type { Emit } from './row.ts';

export async function measureUpgrade(directory: string, emit: Emit): Promise<void> {
  const released = await buildReleased(directory);
  const next = await buildNext(directory, released);
  process.stderr.write(`upgrade: ${released.version} (${released.from}) to ${next.version} (${next.from})\n`);
  const fleet = new UpgradedFleet(join(directory, 'upgrade'), 'fake');
  try {
    await fleet.start(released);
    const load = startLoad(fleet);
    await fleet.upgradeServers(next);
    const { reads, writes } = await load.stop();
    const text = (name: string, { requests, errors, gapMs }: typeof reads): string =>
      `  ${name}: ${requests} requests, ${errors.length} errors, longest gap ${gapMs.toFixed(0)} ms\n`;
    process.stderr.write(text('reads', reads) + text('writes', writes));
    emit({
      suite: 'scale',
      name: 'upgrade_gap_ms',
      value: Math.max(reads.gapMs, writes.gapMs),
      unit: 'ms',
      better: 'lower',
      goal: 500,
    });
  } finally {
    await fleet.stop();
  }
}
