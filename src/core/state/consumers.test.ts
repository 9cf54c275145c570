import { expect, it } from 'vitest';
import { Consumers } from './consumers.ts';

it('knows the instance of an id, and its allocations, until they are gone', () => {
  const consumers = new Consumers();
  consumers.setInstance('a', 'instances/web');
  consumers.addAllocation('a', '1');
  expect(consumers.allocationKeys('a')).toEqual(['1']);
  consumers.addAllocation('a', '2');
  consumers.addAllocation('b', '3');
  expect(consumers.allocationKeys('a')).toEqual(['1', '2']);
  consumers.deleteInstance('a', 'instances/other');
  expect(consumers.instanceKey('a')).toBe('instances/web');
  consumers.deleteInstance('a', 'instances/web');
  expect(consumers.instanceKey('a')).toBeUndefined();
  consumers.deleteAllocation('a', '1');
  consumers.deleteAllocation('a', '9');
  expect(consumers.allocationKeys('a')).toEqual(['2']);
  consumers.deleteAllocation('a', '2');
  expect(consumers.allocationKeys('a')).toEqual([]);
  expect(consumers.allocationKeys('b')).toEqual(['3']);
  expect(consumers.instanceKey('b')).toBeUndefined();
});
