import { availableParallelism } from 'node:os';
import { defineConfig } from 'vitest/config';
import { LongestFirst } from './scripts/tests/longest-first.ts';
import { filesOf } from './scripts/tests/tiers.mjs';

export default defineConfig({
  test: {
    // Tests that boot real guests take seconds; the limit only stops a hang.
    testTimeout: 120_000,
    hookTimeout: 300_000,
    expect: { poll: { timeout: 100_000 } },
    // Half of the time tests wait for guests, servers and disks: two at once, on the smallest machine too.
    maxWorkers: Math.max(2, availableParallelism()),
    sequence: { sequencer: LongestFirst },
    projects: [
      { extends: true, test: { name: 'quick', pool: 'threads', ...filesOf('quick') } },
      { extends: true, test: { name: 'real', pool: 'forks', ...filesOf('real') } },
      { extends: true, test: { name: 'long', pool: 'forks', ...filesOf('long') } },
    ],
  },
});
