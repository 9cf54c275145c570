// Answers that are empty, or that say that nothing was to be done: they must not mislead.

import { describe, expect, it } from 'vitest';
import { type Handler, page, runBerth, testHost, testInstance } from './testing.ts';

const none: Handler = () => page([]);

describe('an empty answer', () => {
  it.each([
    ['host ls', 'hosts'],
    ['ps', 'instances'],
    ['image ls', 'images'],
    ['get pool', 'pools'],
  ])('of berth %s -l says that only nothing has the labels', async (line, things) => {
    const { stderr, exitCode } = await runBerth([...line.split(' '), '-l', 'foo=bar'], { handler: none });
    expect({ stderr, exitCode }).toEqual({ stderr: `no ${things} with the labels "foo=bar"\n`, exitCode: 0 });
  });

  it('of berth ps names a project that was chosen', async () => {
    const { stderr } = await runBerth(['--project', 'ci', 'ps'], { handler: none });
    expect(stderr).toBe('no instances in project "ci"; create one: berth run IMAGE\n');
  });

  it('of berth events NAME says whose events there are none of', async () => {
    const { stderr } = await runBerth(['events', 'nope'], { handler: none });
    expect(stderr).toContain('no recorded event is about "nope"; for names see berth ps');
    expect((await runBerth(['events'], { handler: none })).stderr).toBe('no events yet\n');
  });
});

describe('a name that cannot be or is not there', () => {
  it.each([
    ['by flag', ['--project', 'Z z', 'ps'], {}],
    ['by variable', ['ps'], { BERTH_PROJECT: 'Z z' }],
  ])('is refused as a project %s, before the server is asked', async (_, words, environment) => {
    const { stderr, exitCode, requests } = await runBerth(words, { handler: none, environment });
    expect(stderr).toContain('a project cannot be called "Z z"');
    expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] });
  });

  it.each([
    ['--host', 'host "h3"', 'did you mean "h1"?'],
    ['--pool', 'pool "h3"', 'create it first: berth pool create h3'],
  ])('is refused by image prefetch %s', async (flag, what, advice) => {
    const handler: Handler = ({ path }) => page(path === '/v1/hosts' ? [testHost('h1')] : []);
    const { stderr, exitCode, requests } = await runBerth(['image', 'prefetch', 'tiny', flag, 'h3'], { handler });
    expect(stderr).toContain(`there is no ${what}`);
    expect(stderr).toContain(advice);
    expect(exitCode).toBe(2);
    expect(requests.some(({ method }) => method === 'PUT')).toBe(false);
  });
});

describe('what is so already', () => {
  it.each([
    ['start', 'running', 'Running', 'web runs already\n'],
    ['stop', 'stopped', 'Stopped', 'web is stopped already\n'],
    ['suspend', 'suspended', 'Suspended', 'web is suspended already\n'],
    ['resume', 'running', 'Running', 'web runs already\n'],
  ])('is said by berth %s, and left alone', async (verb, powerState, phase, said) => {
    const web = testInstance('web', { spec: { powerState }, status: { phase } });
    const { stdout, exitCode, requests } = await runBerth([verb, 'web'], { handler: () => ({ json: web }) });
    expect({ stdout, exitCode }).toEqual({ stdout: said, exitCode: 0 });
    expect(requests.map(({ method }) => method)).toEqual(['GET']);
  });

  it('is no change of a host: berth host set wants to know what', async () => {
    const { stderr, exitCode, requests } = await runBerth(['host', 'set', 'h1']);
    expect(stderr).toContain('no change of host "h1" is given');
    expect({ exitCode, requests }).toEqual({ exitCode: 2, requests: [] });
  });
});
