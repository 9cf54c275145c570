import { describe, expect, it } from 'vitest';
import { type Handler, refusal, runBerth } from '../testing.ts';

const create = ['webhook', 'create', 'w', '--to', 'https://hooks.test/x'];

/** Answers for the secret and for the webhook. */
const server =
  (secret: ReturnType<Handler>, webhook: ReturnType<Handler>): Handler =>
  ({ path, method }) =>
    path.startsWith('/v1/secrets') ? (method === 'DELETE' ? { json: {} } : secret) : webhook;

describe('berth webhook create', () => {
  it('leaves no secret when the webhook is refused', async () => {
    const refused = refusal(400, 'InvalidRequest', 'spec.events[0] is not an event', 'spec.events[0]');
    const { exitCode, requests } = await runBerth(create, { handler: server({ json: {} }, refused) });
    expect(exitCode).toBe(2);
    expect(requests.at(-1)).toMatchObject({ method: 'DELETE', path: '/v1/secrets/webhook-w' });
  });

  it('keeps the secret when no server says whether the webhook was created', async () => {
    const lost: Handler = ({ path }) => {
      if (path.startsWith('/v1/secrets')) return { json: {} };
      throw new TypeError('fetch failed');
    };
    const { exitCode, requests } = await runBerth(create, { handler: lost });
    expect(exitCode).toBe(6);
    expect(requests.map(({ method }) => method)).not.toContain('DELETE');
  });

  it('says what to do about the secret of a former webhook', async () => {
    const taken = refusal(409, 'AlreadyExists', 'secret "webhook-w" exists already');
    const { stderr, exitCode } = await runBerth(create, { handler: server(taken, { json: {} }) });
    expect(exitCode).toBe(5);
    expect(stderr).toContain('remove the secret first: berth secret rm webhook-w');
  });
});
