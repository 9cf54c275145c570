import { expect, it } from 'vitest';
import { decodeRecord, encodeRecord, UnreadableRecord } from './codec.ts';
import { testInstance } from '../testing.ts';
import { schemaVersion, upgraded, type UpgradeStep } from './upgrade.ts';

const steps: readonly UpgradeStep[] = [
  ({ memory, ...rest }) => ({ ...rest, memoryMiB: memory }),
  (record) => ({ ...record, labels: {} }),
];

it.each([
  {
    name: 'two versions old',
    record: { kind: 'x', schemaVersion: 1, memory: 5 },
    is: { kind: 'x', schemaVersion: 3, memoryMiB: 5, labels: {} },
  },
  {
    name: 'one version old',
    record: { kind: 'x', schemaVersion: 2, memoryMiB: 5 },
    is: { kind: 'x', schemaVersion: 3, memoryMiB: 5, labels: {} },
  },
  { name: 'of this version', record: { kind: 'x', schemaVersion: 3, a: 1 }, is: { kind: 'x', schemaVersion: 3, a: 1 } },
  { name: 'without a version', record: { kind: 'lease', host: 'h1' }, is: { kind: 'lease', host: 'h1' } },
])('reads a record $name', ({ record, is }) => expect(upgraded(record, steps)).toEqual(is));

it('reads what it has written as it was', () => {
  const instance = testInstance('a');
  expect(instance.schemaVersion).toBe(schemaVersion);
  expect(decodeRecord('instances/default/a', encodeRecord(instance))).toEqual(instance);
});

it('refuses a record of a newer version, and says what to do', () => {
  const newer = { ...testInstance('a'), schemaVersion: schemaVersion + 1 };
  expect(() => decodeRecord('instances/default/a', encodeRecord(newer))).toThrow(UnreadableRecord);
  expect(() => decodeRecord('instances/default/a', encodeRecord(newer))).toThrow('start the newer version');
});
