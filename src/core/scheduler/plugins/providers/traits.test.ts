import { expect, it } from 'vitest';
import type { TraitRules } from '../../../../api/resources/host-rules.ts';
import type { Provider } from '../../../state/records.ts';
import { testHost } from '../../../testing.ts';
import { verdictsOn } from '../test-rule.ts';

function rootOf(name: string, traits: readonly string[]): Provider {
  return { ...testHost(name)[1], traits };
}

const records = [
  rootOf('plain', []),
  rootOf('fast', ['HW_AVX', 'CUSTOM_SSD']),
  rootOf('old', ['HW_AVX', 'CUSTOM_OLD']),
];
const on = (traits: TraitRules) =>
  verdictsOn('traits', { plain: {}, fast: {}, old: {} }, { placement: { traits } }, { records });

it('a required trait must be there', () => {
  expect(on({ required: ['HW_AVX'] })).toEqual({
    plain: 'TraitMissing: it lacks the trait HW_AVX',
    fast: 'fits',
    old: 'fits',
  });
});
it('a forbidden one must not', () => {
  expect(on({ forbidden: ['CUSTOM_OLD'] })).toMatchObject({
    plain: 'fits',
    fast: 'fits',
    old: expect.stringMatching(/^TraitForbidden/),
  });
});
it('of each list one must be there', () => {
  expect(on({ anyOf: [['CUSTOM_SSD', 'CUSTOM_OLD'], ['HW_AVX']] })).toMatchObject({
    plain: expect.stringMatching(/^TraitMissing/),
    fast: 'fits',
  });
});
it('a trait that nobody knows is nowhere', () => {
  expect(Object.values(on({ required: ['CUSTOM_NOBODY_HAS'] })).every((text) => text.startsWith('TraitMissing'))).toBe(
    true,
  );
});
