import { defineConfig } from 'vitest/config';

// Tests that boot real guests take seconds; the limit only stops a hang.
export default defineConfig({
  test: { include: ['src/**/*.test.ts', 'test/**/*.test.ts'], testTimeout: 120_000, hookTimeout: 300_000 },
});
