import { expect, it } from 'vitest';
import { uuidOf } from '../../../state/views/placement-index.ts';
import { testHost } from '../../../testing.ts';
import { verdictsOn } from '../test-rule.ts';

const [, own] = testHost('with');
const device = { ...own, id: `${own.id}-gpu0`, parent: own.id };
const on = (query: string) =>
  verdictsOn(
    'in-tree',
    { plain: {}, with: {} },
    { placement: { query: `resources=VCPU:1&${query}` } },
    { records: [device] },
  );

it.each([
  ['the provider of a host', `in_tree=${uuidOf(own.id)}`],
  ['a device of it', `in_tree=${uuidOf(device.id)}`],
  ['both', `in_tree=${uuidOf(own.id)}&in_tree1=${uuidOf(device.id)}&resources1=VCPU:1`],
])('%s names the host', (_, query) => {
  expect(on(query)).toEqual({
    plain: expect.stringMatching(/^TreeMismatch: it has no resource provider /),
    with: 'fits',
  });
});

it('a provider of no host names none', () => {
  const uuid = '6d0b4b0a-2d0b-4c1b-8e0f-0e2f6d6a5b11';
  expect(on(`in_tree=${uuid}`)).toMatchObject({ with: `TreeMismatch: it has no resource provider ${uuid}` });
});
