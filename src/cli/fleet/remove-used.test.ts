import { describe, expect, it } from 'vitest';
import { type Handler, runBerth } from '../testing.ts';

const effects = {
  hash: 'abcdef0123456789',
  count: 1,
  affected: [
    {
      kind: 'instance',
      id: 'inst_1',
      project: 'ci',
      name: 'web',
      code: 'CannotPlace',
      message: 'it could not go back',
    },
  ],
};
const inUse: Handler = ({ method, query }) => {
  if (method !== 'DELETE') return undefined;
  if (query['dryRun'] === 'true') return { json: { kind: 'image', effects } };
  if (query['apply'] === effects.hash) return { json: {} };
  return {
    status: 409,
    json: { error: { code: 'Conflict', message: 'image "tiny" is in use', details: { hash: effects.hash, count: 1 } } },
  };
};

describe('removing what is in use', () => {
  it('shows what uses it, and how to remove it all the same', async () => {
    const { stdout, stderr, exitCode } = await runBerth(['image', 'rm', 'tiny'], { handler: inUse });
    expect(exitCode).toBe(5);
    expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual([
      'KIND      NAME    EFFECT       WHAT HAPPENS',
      'instance  ci/web  CannotPlace  it could not go back',
      'Effects abcdef0123456789',
      '',
    ]);
    expect(stderr).toContain('berth image rm tiny --apply abcdef0123456789');
  });

  it('happens with the hash', async () => {
    const words = ['image', 'rm', 'tiny', '--apply', effects.hash];
    const { stdout, exitCode } = await runBerth(words, { handler: inUse });
    expect([exitCode, stdout]).toEqual([0, 'tiny removed\n']);
  });

  it('is shown as JSON without a removal', async () => {
    const words = ['image', 'rm', 'tiny', '--dry-run', '-o', 'json'];
    const { stdout, requests } = await runBerth(words, { handler: inUse });
    expect(JSON.parse(stdout)).toEqual(effects);
    expect(requests.map(({ query }) => query['dryRun'])).toEqual(['true']);
  });

  it('takes a hash for one name only', async () => {
    const { exitCode, stderr } = await runBerth(['pool', 'rm', 'a', 'b', '--apply', effects.hash], { handler: inUse });
    expect(exitCode).toBe(2);
    expect(stderr).toContain('--apply is for one name');
  });
});
