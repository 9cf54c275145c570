import { expect, it } from 'vitest';
import { decodeRecord, encodeRecord } from './codec.ts';
import type { RecordByKind } from './records.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const lease = (host: string): RecordByKind['lease'] => ({ kind: 'lease', host, epoch: 1, renewedAtMs: 5 });

it('gives back what was written, whatever its length', () => {
  for (const host of ['a', 'é'.repeat(100), 'x'.repeat(200_000)])
    expect(decodeRecord('leases/a', encodeRecord(lease(host)))).toEqual(lease(host));
});

it.each([
  ['no JSON', '{"kind":"lease"', 'the record at leases/bad is not JSON'],
  ['empty', '', 'the record at leases/bad is not JSON'],
  ['two records', '{"kind":"lease"},{"kind":"lease"}', 'the record at leases/bad is not JSON'],
  ['without a kind', '{}', 'the record at leases/bad has no kind'],
  ['newer', '{"kind":"lease","schemaVersion":1000}', 'the record at leases/bad has schema version 1000'],
])('names the one that cannot be read: %s', (_, text, message) => {
  expect(() => decodeRecord('leases/bad', bytes(text))).toThrow(message);
});
