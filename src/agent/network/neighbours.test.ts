import { expect, it } from 'vitest';
import { neighbourAt } from './neighbours.ts';

const card = '02:00:00:00:00:01';
const at = (dst: string, lladdr: string | undefined, state: string) => ({
  dst,
  dev: 'br0',
  ...(lladdr === undefined ? {} : { lladdr }),
  state: [state],
});

it.each([
  ['nothing at all', [], undefined],
  ['its card', [at('10.0.0.7', card, 'REACHABLE')], '10.0.0.7'],
  ['its card, last heard a while ago', [at('10.0.0.7', card, 'STALE')], '10.0.0.7'],
  ['the card of another', [at('10.0.0.7', '02:00:00:00:00:02', 'REACHABLE')], undefined],
  ['an address at which nobody answered', [at('10.0.0.7', undefined, 'FAILED')], undefined],
  [
    'the address it left, and the one it has',
    [at('10.0.0.7', card, 'STALE'), at('10.0.0.8', card, 'DELAY')],
    '10.0.0.8',
  ],
  [
    'the one it has, and one that may be',
    [at('10.0.0.8', card, 'REACHABLE'), at('10.0.0.7', card, 'PROBE')],
    '10.0.0.8',
  ],
  ['a link-local address', [at('169.254.3.4', card, 'REACHABLE')], undefined],
  ['IPv6', [at('fe80::1', card, 'REACHABLE')], undefined],
])('of %s it takes the right one', (_, said, address) => {
  expect(neighbourAt(JSON.stringify(said), card)).toBe(address);
});

it('stays with the address it had until another is surer', () => {
  const said = (states: readonly [string, string]) =>
    JSON.stringify([at('10.0.0.7', card, states[0]), at('10.0.0.8', card, states[1])]);
  expect(neighbourAt(said(['STALE', 'STALE']), card, '10.0.0.8')).toBe('10.0.0.8');
  expect(neighbourAt(said(['STALE', 'STALE']), card, '10.0.0.7')).toBe('10.0.0.7');
  expect(neighbourAt(said(['STALE', 'REACHABLE']), card, '10.0.0.7')).toBe('10.0.0.8');
});

it('takes an empty answer for no neighbours, and refuses what is none', () => {
  expect(neighbourAt('', card)).toBeUndefined();
  expect(() => neighbourAt('{}', card)).toThrow('something else than neighbours');
});
