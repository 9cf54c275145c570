import { describe, expect, it } from 'vitest';
import { gitFailure, nextScope } from './git-failure.ts';

const where = { url: 'https://git.example.com/a', commit: 'a'.repeat(40) };
const failure = (said: string, change = {}) =>
  gitFailure({ exitCode: 128, killedBy: undefined, missing: false, said, ...change }, where);

describe('what git says', () => {
  it.each([
    ['fatal: remote error: upload-pack: not our ref aaaa', 'CommitNotFound'],
    ['error: Server does not allow request for unadvertised object aaaa', 'CommitNotFound'],
    [`error: Unable to find ${'a'.repeat(40)} under https://git.example.com/a`, 'CommitNotFound'],
    ["fatal: repository 'https://git.example.com/a/' not found", 'RepositoryUnavailable'],
    [
      "fatal: could not read Username for 'https://git.example.com': terminal prompts disabled",
      'RepositoryUnavailable',
    ],
    ["fatal: Authentication failed for 'https://git.example.com/a/'", 'RepositoryUnavailable'],
    ["fatal: unable to access 'https://x/': Failed to connect to x port 443", 'RepositoryUnavailable'],
    ["fatal: unable to access 'https://x/': The requested URL returned error: 301", 'RepositoryRefused'],
    ['fatal: fsck error in packed object', 'RepositoryRefused'],
    ['fatal: write error: File too large\nfatal: fetch-pack: invalid index-pack output', 'RepositoryRefused'],
    ['fatal: write error: No space left on device', 'DiskFull'],
    ['', 'RepositoryUnavailable'],
  ])('%j is %s', (said, code) => expect(failure(said).code).toBe(code));

  it('is not what the server has it show', () => {
    const { code, message } = failure(
      'remote: fatal: not our ref\nremote: \u001b[31mgo to evil.example\nfatal: early EOF',
    );
    expect(code).toBe('RepositoryUnavailable');
    expect(message).toBe('cannot fetch https://git.example.com/a: fatal: early EOF');
  });

  it('is shortened, and has no control characters', () => {
    const { message } = failure(`fatal: \u001b[31m${'x'.repeat(10_000)}`);
    expect(message.length).toBeLessThan(600);
    expect(message).not.toContain('\u001b');
  });

  it('tells how to install git where there is none', () =>
    expect(failure('', { missing: true })).toMatchObject({
      code: 'GitMissing',
      message: expect.stringContaining('apt-get install git'),
    }));

  it('tells what else to ask for', () => {
    expect(nextScope({ said: 'fatal: dumb http transport does not support shallow capabilities' })).toBe('history');
    expect(nextScope({ said: 'fatal: early EOF' })).toBeUndefined();
    expect(nextScope({ said: 'error: Server does not allow request for unadvertised object a' })).toBe('everything');
    expect(nextScope({ said: 'remote: error: unadvertised object' })).toBeUndefined();
  });
});
