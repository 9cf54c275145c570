// How long each test file took when it last ran here: kept in .berth/, which is this machine's own. The order of the next run comes from it.

import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';

const fileOf = (root) => join(root, '.berth', 'test-durations.json');

/** Milliseconds by the file's path below the root; empty where nothing ran yet. */
export function readDurations(root) {
  try {
    return JSON.parse(readFileSync(fileOf(root), 'utf8'));
  } catch {
    return {}; // no run yet, or a file that was cut off: the order is a guess until the next run
  }
}

/** Adds what was measured to what is known. */
export function keepDurations(root, measured) {
  const file = fileOf(root);
  mkdirSync(dirname(file), { recursive: true });
  const known = { ...readDurations(root), ...measured };
  writeFileSync(`${file}.new`, `${JSON.stringify(known, null, 1)}\n`);
  renameSync(`${file}.new`, file);
}
