import { expect, it } from 'vitest';
import { driverFacts } from '../../api/driver-facts.ts';
import { drivers } from './registry.ts';

it('has the drivers that people are told of, and no others', () => {
  expect(Object.keys(drivers).sort()).toEqual(driverFacts.map(({ name }) => name).sort());
});
