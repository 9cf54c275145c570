import { expect, it } from 'vitest';
import { poolAggregate } from '../../../ledger/pool-aggregate.ts';
import { testHost } from '../../../testing.ts';
import { verdictsOn } from '../test-rule.ts';

const storage = '6d0b4b0a-2d0b-4c1b-8e0f-0e2f6d6a5b11';
const ci = poolAggregate('ci');
const on = (query: string) =>
  verdictsOn(
    'aggregates',
    { plain: {}, pooled: { spec: { pool: 'ci' } }, shared: {} },
    { placement: { query: `resources=VCPU:1&${query}` } },
    { records: [{ ...testHost('shared')[1], aggregates: [storage] }] },
  );

it('a pool is an aggregate of its hosts', () => {
  expect(on(`member_of=${ci}`)).toEqual({
    plain: `AggregateMismatch: it is not in the aggregate ${ci}`,
    pooled: 'fits',
    shared: `AggregateMismatch: it is not in the aggregate ${ci}`,
  });
});
it('of each list one aggregate is enough', () => {
  expect(on(`member_of=in:${ci},${storage}`)).toMatchObject({ pooled: 'fits', shared: 'fits' });
  expect(on(`member_of=${ci}&member_of=${storage}`)).toMatchObject({
    pooled: expect.stringMatching(/^AggregateMismatch/),
    shared: expect.stringMatching(/^AggregateMismatch/),
  });
});
it('an excluded aggregate has no host', () => {
  expect(on(`member_of=!in:${ci},${storage}`)).toEqual({
    plain: 'fits',
    pooled: `AggregateMismatch: it is in the aggregate ${ci}, which is excluded`,
    shared: `AggregateMismatch: it is in the aggregate ${storage}, which is excluded`,
  });
});
