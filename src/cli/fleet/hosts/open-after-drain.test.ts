import { describe, expect, it } from 'vitest';
import { type Handler, runBerth, testHost } from '../../testing.ts';

const closed = testHost('h1', { status: { conditions: [{ type: 'Draining', status: 'True', reason: 'Draining' }] } });
const drained = { host: 'h1', phase: 'Drained', guests: [] };

/** A host whose drain has this answer. */
const fleet =
  (drain: ReturnType<Handler>): Handler =>
  ({ path, method }) =>
    !path.endsWith('/drain') ? { json: closed } : method === 'DELETE' ? { json: drained } : drain;

describe('berth host resume of a drained host', () => {
  it.each([
    ['whose drain has ended', { json: drained }],
    [
      'whose drain was lost by a restore',
      { status: 404, json: { error: { code: 'NotFound', message: 'there is no drain' } } },
    ],
  ])('opens one %s', async (_, drain) => {
    const { stdout, requests } = await runBerth(['host', 'resume', 'h1'], { handler: fleet(drain) });
    expect(stdout).toBe('h1 resumed\n');
    expect(requests.at(-1)).toMatchObject({ method: 'DELETE', path: '/v1/hosts/h1/drain' });
  });

  it('does not end a drain that is under way', async () => {
    const handler = fleet({ json: { ...drained, phase: 'Draining' } });
    const { stderr, exitCode, requests } = await runBerth(['host', 'resume', 'h1'], { handler });
    expect(stderr).toContain('"berth host drain h1 --cancel" ends the drain and opens it');
    expect(exitCode).toBe(5);
    expect(requests.map(({ method }) => method)).not.toContain('DELETE');
  });
});
