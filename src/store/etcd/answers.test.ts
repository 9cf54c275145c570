import { fromJSON } from '@grpc/proto-loader';
import { expect, it } from 'vitest';
import { decodeRange, decodeTxn, type RangeResponse } from './answers.ts';

/** The complete messages of rpc.proto and kv.proto: unused fields must be skipped. */
const definitions = fromJSON({
  nested: {
    KeyValue: {
      fields: {
        key: { id: 1, type: 'bytes' },
        createRevision: { id: 2, type: 'int64' },
        modRevision: { id: 3, type: 'int64' },
        version: { id: 4, type: 'int64' },
        value: { id: 5, type: 'bytes' },
        lease: { id: 6, type: 'int64' },
      },
    },
    Header: {
      fields: {
        clusterId: { id: 1, type: 'uint64' },
        memberId: { id: 2, type: 'uint64' },
        revision: { id: 3, type: 'int64' },
        raftTerm: { id: 4, type: 'uint64' },
      },
    },
    Range: {
      fields: {
        header: { id: 1, type: 'Header' },
        kvs: { id: 2, type: 'KeyValue', rule: 'repeated' },
        more: { id: 3, type: 'bool' },
        count: { id: 4, type: 'int64' },
      },
    },
    Put: {
      fields: {
        header: { id: 1, type: 'Header' },
        later: { id: 900, type: 'fixed64' },
        last: { id: 901, type: 'fixed32' },
      },
    },
    Operation: { fields: { range: { id: 1, type: 'Range' }, put: { id: 2, type: 'Put' } } },
    Txn: {
      fields: {
        header: { id: 1, type: 'Header' },
        succeeded: { id: 2, type: 'bool' },
        responses: { id: 3, type: 'Operation', rule: 'repeated' },
      },
    },
    Calls: {
      methods: {
        Range: { requestType: 'Range', responseType: 'Range', comment: '' },
        Txn: { requestType: 'Txn', responseType: 'Txn', comment: '' },
      },
    },
  },
});

function bytesOf(name: 'Range' | 'Txn', message: object): Buffer {
  const method = Reflect.get(definitions['Calls'] ?? {}, name) as { requestSerialize: (message: object) => Buffer }; // the loader makes it
  return Buffer.from(method.requestSerialize(message));
}

const header = { clusterId: '14841639068965178418', memberId: '10276657743932975437', revision: '7', raftTerm: '2' };
const long = Buffer.alloc(100_000, 0xff);
const kvs = [
  { key: Buffer.from('a'), createRevision: '1', modRevision: '2', version: '3', value: Buffer.from([0, 255, 128]) },
  { key: Buffer.from('b'), modRevision: '9007199254740993', value: long, lease: '7587883212000000000' },
  { key: Buffer.from('c'), modRevision: '9223372036854775807' },
  { modRevision: '-1' },
  {},
];
const wholeKvs = [
  { key: Buffer.from('a'), modRevision: '2', value: Buffer.from([0, 255, 128]) },
  { key: Buffer.from('b'), modRevision: '9007199254740993', value: long },
  { key: Buffer.from('c'), modRevision: '9223372036854775807', value: Buffer.alloc(0) },
  { key: Buffer.alloc(0), modRevision: '-1', value: Buffer.alloc(0) },
  { key: Buffer.alloc(0), modRevision: '0', value: Buffer.alloc(0) },
];

/** With its pieces made. */
function wholeOf<R extends RangeResponse | null | undefined>(range: R) {
  return range && { ...range, kvs: range.kvs.map(({ key, modRevision, value }) => ({ key, modRevision, value })) };
}

it('reads what a range holds, and passes over the rest', () => {
  expect(wholeOf(decodeRange(bytesOf('Range', { header, kvs, more: true, count: '123456' })))).toEqual({
    header: { revision: '7' },
    kvs: wholeKvs,
    more: true,
  });
  expect(decodeRange(Buffer.alloc(0))).toEqual({ header: null, kvs: [], more: false });
});

it('reads what each operation of a transaction answers', () => {
  const responses = [{ range: { header, kvs } }, { put: { header, later: '1', last: 2 } }, { range: { more: true } }];
  const { responses: answered, ...rest } = decodeTxn(bytesOf('Txn', { header, succeeded: true, responses }));
  expect(rest).toEqual({ header: { revision: '7' }, succeeded: true });
  expect(answered.map(({ responseRange }) => wholeOf(responseRange))).toEqual([
    { header: { revision: '7' }, kvs: wholeKvs, more: false },
    undefined,
    { header: null, kvs: [], more: true },
  ]);
  expect(decodeTxn(Buffer.alloc(0))).toEqual({ header: null, succeeded: false, responses: [] });
});

it('refuses what is cut off anywhere, or is no such message', () => {
  const bytes = bytesOf('Range', { header, kvs: kvs.slice(0, 1), more: true, count: '5' });
  let cut = 0;
  for (let length = 1; length < bytes.byteLength; length++) {
    try {
      decodeRange(bytes.subarray(0, length));
    } catch (error) {
      expect(error).toMatchObject({ message: 'an answer of etcd is cut off' });
      cut += 1;
    }
  }
  // All but the ends of the header, of the entry and of `more`, which are ends of smaller messages.
  expect(cut).toBe(bytes.byteLength - 1 - 3);
  expect(() => decodeRange(Buffer.from([0x0b]))).toThrow('a field of kind 3');
  expect(() => decodeRange(Buffer.from([0x0a, ...Array.from({ length: 9 }, () => 0xff), 1]))).toThrow('too large');
});
