import { expect, it } from 'vitest';
import { decodeRecord, encodeRecord, RecordsDecoder } from './codec.ts';
import type { AnyRecord, RecordByKind } from './records.ts';

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text);
const lease = (host: string): RecordByKind['lease'] => ({ kind: 'lease', host, epoch: 1, renewedAtMs: 5 });

function decodedTogether(entries: readonly { readonly key: string; readonly value: Uint8Array }[]) {
  const found: [string, AnyRecord][] = [];
  new RecordsDecoder().decode(entries, ({ key }, record) => found.push([key, record]));
  return found;
}

it('reads many as it reads each', () => {
  const hosts = Array.from({ length: 3_000 }, (_, i) => `${'é'.repeat(i % 100)}-${i}`);
  hosts[700] = 'x'.repeat(200_000); // larger than what is read at once
  hosts[2_999] = 'y'.repeat(140_000);
  const entries = hosts.map((host, i) => ({ key: `leases/${i}`, value: encodeRecord(lease(host)) }));
  const one = decodedTogether(entries.slice(0, 1));
  expect(one).toEqual([['leases/0', lease(hosts[0] ?? '')]]);
  expect(decodedTogether(entries)).toEqual(entries.map(({ key, value }) => [key, decodeRecord(key, value)]));
  expect(decodedTogether([])).toEqual([]);
});

it.each([
  ['no JSON', '{"kind":"lease"', 'the record at leases/bad is not JSON'],
  ['empty', '', 'the record at leases/bad is not JSON'],
  ['two records', '{"kind":"lease"},{"kind":"lease"}', 'the record at leases/bad is not JSON'],
  ['without a kind', '{}', 'the record at leases/bad has no kind'],
  ['newer', '{"kind":"lease","schemaVersion":1000}', 'the record at leases/bad has schema version 1000'],
])('names the one that cannot be read: %s', (_, text, message) => {
  const [first, last] = ['a', 'b'].map((host) => ({ key: `leases/${host}`, value: encodeRecord(lease(host)) }));
  if (!first || !last) throw new Error('there are two');
  expect(() => decodedTogether([first, { key: 'leases/bad', value: bytes(text) }, last])).toThrow(message);
});
