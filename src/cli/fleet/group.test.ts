import { describe, expect, it } from 'vitest';
import { type Handler, page, runBerth, testHost, testInstance, testNowMs } from '../testing.ts';

const group = (name: string, spec: object) => ({
  kind: 'group',
  schemaVersion: 1,
  metadata: {
    id: `grp_${name}`,
    name,
    project: 'default',
    revision: 1,
    generation: 1,
    labels: {},
    createdAtMs: testNowMs - 90_000,
  },
  spec: { description: '', ...spec },
  status: {},
});
const made: Handler = ({ method }) => (method === 'POST' ? { status: 201, json: group('web', {}) } : undefined);

describe('berth group', () => {
  it('shows the rules and whether they are kept', async () => {
    const inGroup = (name: string, to: string, host: string) =>
      testInstance(name, { spec: { image: 'tiny', placement: { group: to } }, status: { host } });
    const handler: Handler = ({ path }) => {
      if (path === '/v1/groups')
        return page([
          group('web', {
            antiAffinity: { by: 'host', required: true },
            spread: { by: 'zone', maxSkew: 2, required: false },
          }),
          group('db', { affinity: { by: 'host', required: true }, maxPerHost: 3 }),
        ]);
      if (path === '/v1/instances')
        return page([inGroup('a', 'web', 'h1'), inGroup('b', 'web', 'h1'), inGroup('c', 'db', 'h2')]);
      return path === '/v1/hosts' ? page([testHost('h1'), testHost('h2')]) : undefined;
    };
    const { stdout, exitCode } = await runBerth(['group', 'ls'], { handler });
    expect(exitCode).toBe(0);
    expect(stdout.split('\n').map((line) => line.trimEnd())).toEqual([
      'NAME  RULES                                                 INSTANCES  KEPT                     AGE  DESCRIPTION',
      'db    together by host, 3 per host                                  1  yes                      90s  -',
      'web   apart by host, spread over zone (skew 2) if possible          2  not apart: 2 on host h1  90s  -',
      '',
    ]);
  });

  it('is made from flags', async () => {
    const words = 'group create web --anti-affinity zone:soft --spread rack:2 --max-per-host 3 --description x';
    const { requests, stdout } = await runBerth(words.split(' '), { handler: made });
    expect(stdout).toBe('group web created\n');
    expect(requests[0]?.body).toEqual({
      metadata: { name: 'web', project: 'default' },
      spec: {
        description: 'x',
        antiAffinity: { by: 'zone', required: false },
        spread: { by: 'rack', maxSkew: 2, required: true },
        maxPerHost: 3,
      },
    });
  });
});

describe('berth run with rules about neighbours', () => {
  const create: Handler = ({ method }) => (method === 'POST' ? { status: 201, json: testInstance('web') } : undefined);
  const placementOf = async (words: string) => {
    const { requests, stderr, exitCode } = await runBerth(['run', 'tiny', ...words.split(' ')], { handler: create });
    return requests[0]?.body ?? { stderr, exitCode };
  };

  it('sends them', async () => {
    const words =
      '--group g --affinity app=db --affinity zone:app=db,tier=x:50 --anti-affinity host:app=web --spread zone --spread rack:2:soft --max-per-host 2';
    expect(await placementOf(words)).toMatchObject({
      spec: {
        placement: {
          group: 'g',
          affinity: [
            { to: { app: 'db' }, by: 'host', required: true },
            { to: { app: 'db', tier: 'x' }, by: 'zone', required: false, weight: 50 },
          ],
          antiAffinity: [{ to: { app: 'web' }, by: 'host', required: true }],
          spread: [
            { by: 'zone', maxSkew: 1, required: true },
            { by: 'rack', maxSkew: 2, required: false },
          ],
          maxPerHost: 2,
        },
      },
    });
  });

  it.each([
    ['--affinity db', /--affinity cannot be "db".*app=db/s],
    ['--affinity zone:app=db:0', /the weight must be a whole number from 1 to 100/],
    ['--spread zone:0', /the skew must be a whole number from 1/],
    ['--spread zone:x', /--spread cannot be "zone:x"/],
    ['--max-per-host none', /--max-per-host must be a whole number/],
  ])('refuses %s', async (words, text) => {
    const { stderr, exitCode } = await runBerth(['run', 'tiny', ...words.split(' ')], { handler: create });
    expect({ exitCode, said: stderr }).toEqual({ exitCode: 2, said: expect.stringMatching(text) });
  });
});
