// What the test runner wrote down of one run, as the few facts that the closing line needs.

import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

/**
 * Reads vitest's JSON report: how many tests passed and failed, the files with a failure, and how long each file took, in ms. A file that
 * could not be loaded has no tests to count: it counts as one failure itself. Without a report the whole run is one failure.
 */
export function readReport(path, root) {
  let results;
  try {
    results = JSON.parse(readFileSync(path, 'utf8'));
  } catch (error) {
    return { passed: 0, failed: 1, files: [], durations: {}, missing: error.message };
  }
  const files = results.testResults.map((file) => ({
    path: relative(root, file.name),
    durationMs: Math.round(file.endTime - file.startTime),
    passed: count(file, 'passed'),
    failed: Math.max(count(file, 'failed'), file.status === 'failed' ? 1 : 0),
    failures: file.assertionResults.filter(({ status }) => status === 'failed').map(({ fullName }) => fullName),
  }));
  return {
    passed: sum(files, 'passed'),
    failed: sum(files, 'failed'),
    files,
    durations: Object.fromEntries(
      files.filter(({ durationMs }) => durationMs > 0).map(({ path, durationMs }) => [path, durationMs]),
    ),
  };
}

function count(file, status) {
  return file.assertionResults.filter((test) => test.status === status).length;
}

function sum(files, field) {
  return files.reduce((total, file) => total + file[field], 0);
}
