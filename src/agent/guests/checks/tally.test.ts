import { describe, expect, it } from 'vitest';
import type { CheckName, Checks } from '../../../api/resources/check.ts';
import { type Attempt, afterAttempt, dueChecks, firstTally, type Tally } from './tally.ts';

const tcp = { tcp: { port: 80 } };
const good: Attempt = { ok: true };
const bad: Attempt = { ok: false, message: 'refused' };

/** `S+ R- L-`: attempts of start-up, readiness and liveness, good and bad. */
function play(checks: Checks, text: string, kept?: Parameters<typeof firstTally>[1]): Tally {
  const names: Readonly<Record<string, CheckName>> = { S: 'startup', R: 'readiness', L: 'liveness' };
  return text
    .split(' ')
    .filter((word) => word !== '')
    .reduce(
      (tally, word) => afterAttempt(checks, tally, names[word[0] ?? ''] ?? 'readiness', word[1] === '+' ? good : bad),
      firstTally(checks, kept),
    );
}

const shown = ({ started, passing, dead }: Tally): string =>
  dead === undefined ? (started ? (passing ? 'ready' : 'started') : 'starting') : `dead by ${dead.name}`;

describe('the checks of a guest', () => {
  const startup = { ...tcp, failures: 2 };
  const readiness = { ...tcp, failures: 2, successes: 2 };
  const all = { startup, readiness, liveness: tcp };
  const rows: [name: string, checks: Checks, attempts: string, shown: string][] = [
    ['it is not ready before the first attempt', { readiness: tcp }, '', 'started'],
    ['one success makes it ready', { readiness: tcp }, 'R+', 'ready'],
    ['two of three failures leave it ready', { readiness: tcp }, 'R+ R- R-', 'ready'],
    ['three failures in a row take it off', { readiness: tcp }, 'R+ R- R- R-', 'started'],
    ['a success between them begins again', { readiness: tcp }, 'R+ R- R- R+ R- R-', 'ready'],
    ['it needs as many successes in a row as asked', { readiness }, 'R+ R- R+', 'started'],
    ['and has them', { readiness }, 'R+ R- R+ R+', 'ready'],
    ['start-up holds the others back', all, 'R+ R+ L- L- L-', 'starting'],
    ['after start-up they count', all, 'S+ R+ R+', 'ready'],
    ['start-up that fails ends it', all, 'S- S-', 'dead by startup'],
    ['liveness ends it', all, 'S+ R+ R+ L- L- L-', 'dead by liveness'],
    ['dead, it stays so', all, 'S- S- S+ R+ R+ L+', 'dead by startup'],
    ['start-up is not asked for twice', all, 'S+ S- S- S- R+ R+', 'ready'],
    ['readiness alone never ends it', { readiness: tcp }, 'R- R- R- R- R- R- R-', 'started'],
    ['without a readiness check start-up is all', { startup }, 'S+', 'ready'],
    ['a flapping check below its limit is quiet', { readiness }, 'R+ R+ R- R+ R- R+ R- R+', 'ready'],
  ];
  it.each(rows)('%s', (_, checks, attempts, expected) => {
    expect(shown(play(checks, attempts))).toBe(expected);
  });

  it('goes on where the last agent left it', () => {
    expect(shown(play(all, '', { started: true, passing: true }))).toBe('ready');
    expect(shown(play(all, 'R- R-', { started: true, passing: true }))).toBe('started');
    const dead = { name: 'liveness', message: 'refused' } as const;
    expect(shown(play(all, 'R+ R+', { started: true, passing: true, dead }))).toBe('dead by liveness');
  });

  it('attempts nothing of a dead guest, and only start-up of one that starts', () => {
    expect(dueChecks(all, play(all, ''))).toEqual(['startup']);
    expect(dueChecks(all, play(all, 'S+'))).toEqual(['readiness', 'liveness']);
    expect(dueChecks(all, play(all, 'S- S-'))).toEqual([]);
  });

  it('says why, with the newest reason once per limit', () => {
    expect(play({ readiness: tcp }, '').failing).toEqual({
      name: 'readiness',
      message: 'the readiness check has not passed yet',
    });
    expect(play({ readiness: tcp }, 'R- R- R-').failing?.message).toBe('the readiness check failed: refused');
    expect(play(all, 'S+ L- L- L-').dead?.message).toBe('the liveness check failed 3 times in a row: refused');
  });
});
