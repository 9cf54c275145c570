// What the command says of the plan of a restore and of its progress, and what it asks the server.

import { describe, expect, it } from 'vitest';
import { type Handler, runBerth } from '../../testing.ts';

const guest = (name: string, change: object = {}) => ({
  ...{ kind: 'instance', id: `inst_${name}`, project: 'default', name, generation: 1, incarnation: 1 },
  ...{ action: 'move', target: 'h1', from: 'h2', reasons: [], amounts: {}, ...change },
});

const guests = [
  guest('db', { reasons: [{ code: 'Live', message: 'it keeps running' }] }),
  guest('ci', { reasons: [{ code: 'Cold', message: 'it is stopped' }] }),
  guest('full', { action: 'stays', reasons: [{ code: 'NoHost', message: 'host h1 does not take it' }] }),
];
const options = { movesMax: 2, deadlineMs: 3_600_000 };
const base = { host: 'h1', hostId: 'host_1', hash: 'abcdefgh', options, guests };

const clock = {
  nowMs: () => 0,
  monotonicMs: () => 0,
  setTimer: (_delayMs: number, fire: () => void) => {
    queueMicrotask(fire);
    return { cancel() {} };
  },
};

/** The restore ends at the second look. */
function fleet(phase = 'Restored', planned: readonly object[] = guests): Handler {
  let looks = 0;
  return ({ method, body }) => {
    const restore = { ...base, startedAtMs: 0, deadlineAtMs: 1 };
    if (method === 'POST' && (body as { apply?: string }).apply === undefined)
      return { json: { plan: { ...base, madeAtMs: 0, guests: planned } } };
    if (method === 'POST') return { json: { restore: { ...restore, phase: 'Restoring' } } };
    looks += 1;
    return { json: { ...restore, phase: method === 'DELETE' ? 'Cancelled' : looks > 1 ? phase : 'Restoring' } };
  };
}

describe('berth host restore', () => {
  it('shows what returns and how, and what stays', async () => {
    const { stdout } = await runBerth(['host', 'restore', 'h1'], { handler: fleet() });
    const lines = stdout.split('\n').map((line) => line.trim().split(/ {2,}/));
    expect(lines.slice(2, 6)).toEqual([
      ['NAME', 'ACTION', 'FROM', 'WHY'],
      ['db', 'moved live', 'h2', 'it keeps running'],
      ['ci', 'moved cold', 'h2', 'it is stopped'],
      ['full', 'cannot move', 'h2', 'host h1 does not take it'],
    ]);
    expect(stdout).toContain('Apply it with:\n  berth host restore h1 --apply abcdefgh\n');
  });

  it('says that nothing returns, and begins nothing', async () => {
    const { stdout, requests } = await runBerth(['host', 'restore', 'h1', '--yes'], { handler: fleet('', []) });
    expect(stdout).toContain('Nothing returns to host h1');
    expect(JSON.stringify(requests)).not.toContain('apply');
  });

  it('applies the plan with its options, and waits until it has ended', async () => {
    const { stdout, exitCode, requests } = await runBerth(
      ['host', 'restore', 'h1', '--yes', '--watch', '--moves-max', '1'],
      { handler: fleet(), clock },
    );
    expect(JSON.stringify(requests)).toContain('{"movesMax":1,"deadlineMs":3600000,"apply":"abcdefgh"}');
    expect([exitCode, stdout]).toEqual([0, expect.stringMatching(/^h1: Restoring[^]*h1: Restored/)]);
  });

  it.each([
    ['one that ends incomplete', ['--watch'], 'not all of host "h1" has returned'],
    ['two verbs', ['--apply', 'x', '--yes'], 'give only one of --apply, --yes, --status and --cancel'],
    ['options without a plan', ['--status', '--moves-max', '3'], '--status'],
  ])('fails for %s', async (_, words, said) => {
    const { stderr, exitCode } = await runBerth(['host', 'restore', 'h1', ...words], {
      handler: fleet('Incomplete'),
      clock,
    });
    expect(stderr).toContain(said);
    expect(exitCode).not.toBe(0);
  });

  it('cancels', async () => {
    const { stdout } = await runBerth(['host', 'restore', 'h1', '--cancel'], { handler: fleet() });
    expect(stdout).toContain('h1: Cancelled');
  });
});
