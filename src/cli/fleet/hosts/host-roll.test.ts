// What the command says of the plan of a roll and of its progress, and what it asks the server.

import { describe, expect, it } from 'vitest';
import { type Handler, runBerth } from '../../testing.ts';

const at = { hostId: 'host_1', group: 1, byCommand: false };
const live = { action: 'move', reasons: [{ code: 'Live', message: 'it keeps running' }] };
const plan = {
  ...{ hash: 'abcdefgh', madeAtMs: 0 },
  options: { maxAtOnce: 2, drainDeadlineMs: 3_600_000, bootDeadlineMs: 3_600_000 },
  hosts: [
    { ...at, host: 'h1', guests: [live, live, { action: 'stop', reasons: [] }] },
    { ...at, host: 'h2', byCommand: true, guests: [] },
  ],
  blocked: [{ host: 'h3', hostId: 'host_3', reasons: [{ code: 'NotReady', message: 'its agent is not ready' }] }],
};

const clock = {
  nowMs: () => 0,
  monotonicMs: () => 0,
  setTimer: (_delayMs: number, fire: () => void) => {
    queueMicrotask(fire);
    return { cancel() {} };
  },
};

/** The roll ends at the second look. */
function fleet(phase = 'Done'): Handler {
  let looks = 0;
  const roll = (now: string) => ({
    ...{ hash: 'abcdefgh', options: plan.options, phase: now, startedAtMs: 0 },
    hosts: [{ ...at, host: 'h1', step: now === 'Done' ? 'done' : 'maintenance', message: 'it is empty: reboot it' }],
  });
  return ({ method, path, body }) => {
    if (path === '/v1/host-roll/pause')
      return { json: roll((body as { paused: boolean }).paused ? 'Paused' : 'Rolling') };
    if (method === 'DELETE') return { json: roll('Cancelled') };
    if (method === 'GET') return { json: roll(++looks > 1 ? phase : 'Rolling') };
    return { json: (body as { apply?: string }).apply === undefined ? { plan } : { roll: roll('Rolling') } };
  };
}

const berth = (words: string, phase?: string) =>
  runBerth(['host', 'roll', ...words.split(' ').filter((word) => word !== '')], { handler: fleet(phase), clock });

describe('berth host roll', () => {
  it('shows the groups, what happens on each host, and what is left out', async () => {
    const { stdout } = await berth('h1 h2 h3 --max-at-once 2');
    const lines = stdout.split('\n').map((line) => line.trim().split(/ {2,}/));
    expect(lines.slice(2, 5)).toEqual([
      ['HOST', 'GROUP', 'INSTANCES', 'REBOOT'],
      ['h1', '1', '2 moved live, 1 stopped', 'by a person'],
      ['h2', '1', 'none', 'by its agent'],
    ]);
    expect(lines).toContainEqual(['h3', 'its agent is not ready']);
    expect(stdout).toContain('  berth host roll h1 h2 h3 --max-at-once 2 --apply abcdefgh\n');
  });

  it('applies the plan with its options, and waits until it has ended', async () => {
    const { stdout, exitCode, requests } = await berth('--pool web --no-restore --apply abcdefgh --watch');
    expect(requests[0]?.body).toMatchObject({ pool: 'web', restore: false, maxAtOnce: 1, apply: 'abcdefgh' });
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^Rolling, 0 of 1[^]*Done, 1 of 1 hosts done/)]);
  });

  it.each([
    ['--pause', 'Paused, 0 of 1'],
    ['--resume', 'Rolling, 0 of 1'],
    ['--cancel', 'Cancelled, 0 of 1'],
    ['--status', 'h1    1      maintenance  it is empty: reboot it'],
  ])('%s', async (words, said) => {
    const { stdout, exitCode } = await berth(words);
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining(said)]);
  });

  it.each([
    ['a roll that fails', '--watch', 'the roll is Failed'],
    ['no hosts', '', 'name either hosts or --pool'],
    ['hosts and a pool', 'h1 --pool web', 'name either hosts or --pool'],
    ['two verbs', '--pause --resume', 'give only one of'],
    ['hosts without a plan', 'h1 --status', 'name hosts only with a plan'],
    ['options without a plan', '--status --no-restore', 'has no effect with --status'],
  ])('fails for %s', async (_, words, said) => {
    const { stderr, exitCode } = await berth(words, 'Failed');
    expect(stderr).toContain(said);
    expect(exitCode).not.toBe(0);
  });
});
