import { describe, expect, it } from 'vitest';
import { type Handler, refusal, runBerth, testHost } from './testing.ts';

describe('a change of a part', () => {
  const racing = (losses: number): { handler: Handler; written: () => number } => {
    let reads = 0;
    let writes = 0;
    return {
      written: () => writes,
      handler({ method }) {
        if (method === 'GET') return { json: testHost('h1', { spec: { pool: `read-${++reads}` } }) };
        return ++writes > losses ? { json: testHost('h1') } : refusal(412, 'RevisionMismatch', 'it has changed');
      },
    };
  };

  it('is made on what was read last', async () => {
    const { handler } = racing(4);
    const { exitCode, requests } = await runBerth(['host', 'pause', 'h1'], { handler });
    expect(exitCode).toBe(0);
    expect(requests.at(-1)?.body).toMatchObject({ spec: { pool: 'read-5', paused: true } });
  });

  it('is given up after five tries', async () => {
    const { handler, written } = racing(100);
    const { exitCode, stderr } = await runBerth(['host', 'pause', 'h1'], { handler });
    expect([exitCode, written()]).toEqual([5, 5]);
    expect(stderr).toContain('it was changed at the same time');
  });
});
