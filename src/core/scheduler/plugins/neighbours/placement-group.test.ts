import { expect, it } from 'vitest';
import { testGroup } from '../../../testing.ts';
import { fleetWith, member, said, told } from './test-neighbours.ts';

it('an instance whose placement group is gone is placed nowhere', () => {
  const cache = fleetWith({ h1: {} }, [testGroup('g')]);
  expect(said(cache, 'placement-group', member('a', {}, { group: 'g' }))).toEqual({ h1: 'fits' });
  const lost = member('a', {}, { group: 'gone' });
  expect(said(cache, 'placement-group', lost)).toEqual({ h1: 'GroupMissing' });
  expect(told(cache, 'placement-group', lost, 'h1')).toBe('its placement group "gone" has been deleted');
});
