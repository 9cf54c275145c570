import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import type { TestSequencer, TestSpecification } from 'vitest/node';

/** Those that take longest, half a minute and more, where nothing is known of an earlier run: when they begin last, all others wait for them. */
const longest = [
  'src/sim/sim.test.ts',
  'src/agent/drivers/vm/every-step.test.ts',
  'src/agent/drivers/libvirt/faults.test.ts',
  'src/agent/network/every-step.test.ts',
  'src/store/etcd/etcd-faults.test.ts',
  'src/agent/drivers/container/faults.test.ts',
  'test/instance.test.ts',
  'test/volume-every-step.test.ts',
  'src/agent/network/nat-network.test.ts',
  'src/store/sqlite/sqlite-faults.test.ts',
  'test/shared-stores.test.ts',
  'src/agent/images/build.test.ts',
  'test/debian-image.test.ts',
  'test/nat-guests.test.ts',
  'src/agent/network/nat-conformance.test.ts',
  'src/agent/drivers/container/driver.test.ts',
];

class LongestFirst implements TestSequencer {
  sort(files: TestSpecification[]): TestSpecification[] {
    const placeOf = ({ moduleId }: TestSpecification): number => {
      const at = longest.findIndex((path) => moduleId.endsWith(`/${path}`));
      return at < 0 ? longest.length : at;
    };
    return [...files].sort((a, b) => placeOf(a) - placeOf(b) || (a.moduleId < b.moduleId ? -1 : 1));
  }

  shard(files: TestSpecification[]): TestSpecification[] {
    return files;
  }
}

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    // Tests that boot real guests take seconds; the limit only stops a hang.
    testTimeout: 120_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 100_000 } },
    // Half of the time tests wait for guests, servers and disks: two at once, on the smallest machine too.
    maxWorkers: Math.max(2, availableParallelism()),
    sequence: { sequencer: LongestFirst },
  },
});
