import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { readReport } from '../scripts/tests/report.mjs';

let root = '';
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'berth-report-'));
});
afterEach(() => rmSync(root, { recursive: true }));

function read(testResults: readonly object[]) {
  const path = join(root, 'report.json');
  writeFileSync(path, JSON.stringify({ testResults }));
  return readReport(path, root);
}

const file = (name: string, status: string, statuses: readonly string[]) => ({
  name: join(root, name),
  status,
  startTime: 1000,
  endTime: 1250.4,
  assertionResults: statuses.map((each, at) => ({ status: each, fullName: `test ${at}` })),
});

describe('the report of a run of tests', () => {
  it('counts what passed and failed, and names the files and tests that failed', () => {
    const report = read([file('a.test.ts', 'passed', ['passed', 'skipped']), file('b.test.ts', 'failed', ['failed'])]);
    expect(report).toMatchObject({ passed: 1, failed: 1, durations: { 'a.test.ts': 250, 'b.test.ts': 250 } });
    expect(report.files[1]).toMatchObject({ path: 'b.test.ts', failed: 1, failures: ['test 0'] });
  });

  it('counts a file that could not be loaded as one failure', () => {
    expect(read([file('a.test.ts', 'failed', [])])).toMatchObject({ passed: 0, failed: 1 });
  });

  it('counts a file as failed when a hook of it failed after every test passed', () => {
    expect(read([file('a.test.ts', 'failed', ['passed'])])).toMatchObject({ passed: 1, failed: 1 });
  });

  it('is one failure when there is none', () => {
    expect(readReport(join(root, 'absent.json'), root)).toMatchObject({ passed: 0, failed: 1, files: [] });
  });
});
