// The order of test files: those that took longest the last time begin first, so that no long one is alone at the end. A file that has
// never run here is judged by its size. A shard gets every nth file of that order.

import { statSync } from 'node:fs';
import { relative } from 'node:path';
import type { TestSequencer, TestSpecification, Vitest } from 'vitest/node';
import { readDurations } from './durations.mjs';

/** 1.5 ms for each byte of a test: what the tests with real parts take on average, on two cores. */
const msPerByte = 1.5;

export class LongestFirst implements TestSequencer {
  readonly #vitest: Vitest;

  constructor(vitest: Vitest) {
    this.#vitest = vitest;
  }

  sort(files: TestSpecification[]): TestSpecification[] {
    const root = this.#vitest.config.root;
    const durations: Readonly<Record<string, number>> = readDurations(root);
    const expectedMs = new Map(
      files.map(({ moduleId }) => [
        moduleId,
        durations[relative(root, moduleId)] ?? statSync(moduleId).size * msPerByte,
      ]),
    );
    const byName = (a: TestSpecification, b: TestSpecification): number => (a.moduleId < b.moduleId ? -1 : 1);
    return files.toSorted(
      (a, b) => (expectedMs.get(b.moduleId) ?? 0) - (expectedMs.get(a.moduleId) ?? 0) || byName(a, b),
    );
  }

  shard(files: TestSpecification[]): TestSpecification[] {
    const shard = this.#vitest.config.shard;
    if (!shard) return files;
    return this.sort(files).filter((_, at) => at % shard.count === shard.index - 1);
  }
}
