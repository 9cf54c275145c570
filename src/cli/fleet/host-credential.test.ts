import { expect, it } from 'vitest';
import { type Handler, page, runBerth, testHost } from '../testing.ts';

function fleet(...credentials: readonly (string | undefined)[]): Handler {
  const hosts = credentials.map((credential, i) => testHost(`h${i}`, { status: credential ? { credential } : {} }));
  return ({ path }) => (path === '/v1/hosts' ? page(hosts) : { json: { items: [] } });
}

it('marks hosts with a host token, as long as there are any', async () => {
  const marked = await runBerth(['host', 'ls'], { handler: fleet('certificate', 'host-token') });
  const [head = '', ...rows] = marked.stdout.trim().split('\n');
  expect(head).toContain('CREDENTIAL');
  expect(rows.map((row) => /certificate|host-token/.exec(row)?.[0])).toEqual(['certificate', 'host-token']);
  for (const handler of [fleet('certificate'), fleet(undefined)])
    expect((await runBerth(['host', 'ls'], { handler })).stdout).not.toContain('CREDENTIAL');
});
