import { describe, expect, it } from 'vitest';
import type { JobAttempt } from '../../api/resources/job.ts';
import { testJob } from '../../core/testing.ts';
import { testHistory } from '../test-history.ts';
import { logsChecker } from './logs.ts';

const succeeded: JobAttempt = {
  number: 1,
  instance: 'a-1',
  instanceId: 'inst_1',
  createdAtMs: 0,
  outcome: 'succeeded',
  message: 'the program succeeded',
};
const time = '2026-01-01T00:00:00.000Z';

/** A job that prints `one` and `two`, and `bad` as an error. */
function faultsWith(log: string, attempt: Partial<JobAttempt> = {}): string[] {
  const { commit, unrest } = testHistory((facts) => logsChecker({ ...facts, runLog: () => log }));
  const script = 'echo one\necho bad >&2\necho two\n';
  commit(testJob('a', { script }, { phase: 'Succeeded', attempt: 1, attempts: [{ ...succeeded, ...attempt }] }));
  return unrest();
}

const whole = `${time} stdout F one\n${time} stderr F bad\n${time} stdout F two\n`;

describe('the log of a job that succeeded', () => {
  it.each([
    ['has its lines', whole],
    ['may have the streams in another order', `${time} stderr F bad\n${time} stdout F one\n${time} stdout F two\n`],
    ['may have a line in parts', whole.replace('F two\n', `P tw\n${time} stdout F o\n`)],
  ])('%s', (_, log) => expect(faultsWith(log)).toEqual([]));

  it.each([
    ['lacks a line', whole.replace(`${time} stdout F one\n`, ''), '"two\\n" of stdout'],
    ['repeats a line', whole + whole.slice(whole.lastIndexOf(time)), '"one\\ntwo\\ntwo\\n" of stdout'],
    ['is not there', '', '"" of stdout'],
  ])('is at fault when it %s', (_, log, what) => expect(faultsWith(log)).toEqual([expect.stringContaining(what)]));

  it('is not looked at when it is said to be incomplete, or the attempt failed', () => {
    expect(faultsWith('', { message: 'the disk is full' })).toEqual([]);
    expect(faultsWith('', { outcome: 'infrastructure' })).toEqual([]);
  });
});
