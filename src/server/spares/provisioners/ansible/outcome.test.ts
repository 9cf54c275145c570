import { describe, expect, it } from 'vitest';
import { hiding } from '../../plain-line.ts';
import { type EndedRun, outcomeOf, progressOf } from './outcome.ts';

const task = (name: string) => ({ event: 'task', name });
const fault = { event: 'failed', host: 'rack1', task: 'Install', message: 'no space left' };
const end = (hosts: object, found: object = {}) => ({ event: 'end', hosts, found });
const run = (changes: Partial<EndedRun>): EndedRun => ({
  exitCode: 0,
  events: [],
  output: '',
  hide: (text) => text,
  ...changes,
});

describe('a run of ansible-playbook', () => {
  it.each<[string, Partial<EndedRun>, string]>([
    [
      'that failed in a task',
      { exitCode: 2, events: [fault] },
      'exit code 2: task "Install" failed on rack1: no space',
    ],
    [
      'of a task with no_log',
      { exitCode: 2, events: [{ ...fault, task: '', message: '' }] },
      'exit code 2: a task failed on rack1',
    ],
    [
      'whose host is unreachable',
      { exitCode: 4, events: [{ ...fault, event: 'unreachable', message: 'timed out' }] },
      'exit code 4: rack1 is unreachable: timed out',
    ],
    ['that cannot be read', { exitCode: 4, output: 'ERROR! Syntax\n' }, 'cannot be read: ERROR! Syntax'],
    ['with wrong options', { exitCode: 5 }, 'its options are not accepted'],
    ['without Ansible', { exitCode: 127 }, 'install the package ansible-core'],
    ['with a bug of Ansible', { exitCode: 250, output: 'Traceback' }, 'failed unexpectedly: Traceback'],
    ['that a signal ended', { exitCode: 143 }, 'signal 15 ended it'],
    ['of an unknown code', { exitCode: 77 }, 'exit code 77: it failed'],
    ['that was killed', { exitCode: undefined, events: [task('Install')] }, 'is not known (during task 1: Install)'],
    ['that we ended', { exitCode: 143, stopped: 'it ran for longer than 3 s' }, 'it ran for longer than 3 s'],
    ['that did nothing', { events: [end({})] }, 'ran on no host'],
    ['that did not say its end', {}, 'ran on no host'],
    ['with an end that is none', { events: [{ event: 'end', hosts: [] }] }, 'ran on no host'],
  ])('%s has failed', (_, changes, message) => {
    expect(outcomeOf(run(changes))).toEqual({ ok: false, message: expect.stringContaining(message) });
  });

  it('that did its work has found what it said', () => {
    const events = [end({ rack1: { ok: 2 } }, { berth_address: '10.0.0.9', berth_name: 7 })];
    expect(outcomeOf(run({ events }))).toEqual({ ok: true, found: { berth_address: '10.0.0.9' } });
  });

  it('never shows a secret', () => {
    const hide = hiding(['hunter2', 'two\nlines-of-it', 'abc']);
    const message = 'login hunter2 failed, lines-of-it, abc';
    for (const changes of [{ events: [{ ...fault, message }] }, { output: message }]) {
      const outcome = outcomeOf(run({ exitCode: 2, hide, ...changes }));
      expect(outcome).toMatchObject({ message: expect.stringContaining('login *** failed, ***, abc') });
    }
    const long = outcomeOf(run({ exitCode: 1, hide, output: `hunter2${'x'.repeat(595)}` }));
    expect(long).toMatchObject({ ok: false, message: expect.not.stringContaining('nter2') });
  });

  it('says what it does', () => {
    expect(progressOf([])).toBeUndefined();
    expect(progressOf([task('Install'), task('Start\u001b[31m'), { event: 'failed' }])).toBe('task 2: Start');
    expect(progressOf([task('')])).toBe('task 1');
  });
});
