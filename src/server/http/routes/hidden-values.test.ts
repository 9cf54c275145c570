import { describe, expect, it } from 'vitest';
import { testInstance } from '../../../core/testing.ts';
import { withHiddenKept } from './hidden-values.ts';
import { withoutSecrets } from './without-secrets.ts';

const main = {
  name: 'main',
  command: ['shop', '--password=x'],
  args: ['y'],
  env: { TOKEN: 'z', DEBUG: '1' },
  ports: [],
};
const side = { name: 'side', env: { TOKEN: 'other' }, ports: [] };
const run = { script: 'login x', env: { KEY: 'k' }, artifacts: [], timeLimitMs: 1, graceMs: 0, holdOnFailure: false };
const before = testInstance('a', { userData: '#cloud-config', containers: [main, side], run });
const { spec: read } = withoutSecrets(before) as typeof before; // the kind stays
const hidden = '(hidden)';

it('gives back all that was hidden when a resource is sent back as it was read', () => {
  expect(JSON.stringify(read)).not.toMatch(/password|cloud-config|login x/);
  expect(withHiddenKept(read, before)).toEqual(before.spec);
});

it('takes new values beside those that are kept', () => {
  const sent = { ...read, userData: 'new', containers: [{ ...main, env: { TOKEN: hidden, DEBUG: '2' } }] };
  expect(withHiddenKept(sent, before)).toMatchObject({
    userData: 'new',
    containers: [{ env: { TOKEN: 'z', DEBUG: '2' } }],
  });
});

it('knows containers by their names, in any order', () => {
  const sent = { ...read, containers: read.containers?.toReversed() };
  expect(withHiddenKept(sent, before)).toMatchObject({ containers: [side, main] });
});

describe('refuses what is hidden where nothing is', () => {
  const bare = testInstance('a');
  it.each<[string, unknown, typeof bare | undefined, string]>([
    ['user-data of a new instance', { userData: hidden }, undefined, 'spec.userData'],
    ['the environment of a new job', { env: { TOKEN: hidden } }, undefined, 'spec.env.TOKEN'],
    ['the script of a new job', { script: hidden }, undefined, 'spec.script'],
    ['user-data where there is none', { userData: hidden }, bare, 'spec.userData'],
    ['another variable', { containers: [{ ...main, env: { OTHER: hidden } }] }, before, 'spec.containers[0].env.OTHER'],
    [
      'a variable called __proto__',
      { run: JSON.parse(`{"env":{"__proto__":"${hidden}"}}`) },
      before,
      'spec.run.env.__proto__',
    ],
    [
      'another container',
      { containers: [{ ...main, name: 'x', args: [], env: { TOKEN: hidden } }] },
      before,
      'spec.containers[0].env.TOKEN',
    ],
    [
      'a longer command',
      { containers: [{ name: 'main', command: ['sh', hidden, hidden] }] },
      before,
      'spec.containers[0].command[1]',
    ],
  ])('%s', (_name, spec, had, field) => {
    expect(() => withHiddenKept(spec, had)).toThrow(expect.objectContaining({ code: 'InvalidRequest', field }));
  });
});

it('leaves alone what is no secret, and what is no spec', () => {
  expect(withHiddenKept({ description: hidden }, undefined)).toEqual({ description: hidden });
  for (const spec of [null, 'x', 3, []]) expect(withHiddenKept(spec, before)).toBe(spec);
});
