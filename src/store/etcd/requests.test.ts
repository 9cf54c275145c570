import { fromJSON } from '@grpc/proto-loader';
import * as fc from 'fast-check';
import { expect, it } from 'vitest';
import { type Compare, encodeTxn, type RequestOp, type TxnRequest } from './requests.ts';

const int64 = (id: number) => ({ id, type: 'int64' });
const bytes = (id: number) => ({ id, type: 'bytes' });

/** As rpc.proto has it. */
const definitions = fromJSON(
  {
    nested: {
      Compare: {
        oneofs: { targetUnion: { oneof: ['version', 'createRevision', 'modRevision', 'value', 'lease'] } },
        fields: {
          result: { id: 1, type: 'CompareResult' },
          target: { id: 2, type: 'CompareTarget' },
          key: bytes(3),
          version: int64(4),
          createRevision: int64(5),
          modRevision: int64(6),
          value: bytes(7),
          lease: int64(8),
          rangeEnd: bytes(64),
        },
        nested: {
          CompareResult: { values: { EQUAL: 0, GREATER: 1, LESS: 2, NOT_EQUAL: 3 } },
          CompareTarget: { values: { VERSION: 0, CREATE: 1, MOD: 2, VALUE: 3, LEASE: 4 } },
        },
      },
      Range: {
        fields: {
          key: bytes(1),
          rangeEnd: bytes(2),
          limit: int64(3),
          revision: int64(4),
          sortOrder: int64(5),
          sortTarget: int64(6),
          serializable: { id: 7, type: 'bool' },
          keysOnly: { id: 8, type: 'bool' },
          countOnly: { id: 9, type: 'bool' },
        },
      },
      Put: { fields: { key: bytes(1), value: bytes(2), lease: int64(3), prevKv: { id: 4, type: 'bool' } } },
      DeleteRange: { fields: { key: bytes(1), rangeEnd: bytes(2), prevKv: { id: 3, type: 'bool' } } },
      Operation: {
        oneofs: { request: { oneof: ['requestRange', 'requestPut', 'requestDeleteRange'] } },
        fields: {
          requestRange: { id: 1, type: 'Range' },
          requestPut: { id: 2, type: 'Put' },
          requestDeleteRange: { id: 3, type: 'DeleteRange' },
        },
      },
      Txn: {
        fields: {
          compare: { id: 1, type: 'Compare', rule: 'repeated' },
          success: { id: 2, type: 'Operation', rule: 'repeated' },
          failure: { id: 3, type: 'Operation', rule: 'repeated' },
        },
      },
      Any: { methods: { txn: { requestType: 'Txn', responseType: 'Txn', comment: '' } } },
    },
  },
  { longs: String, enums: String, arrays: true },
);

function read(encoded: Buffer): unknown {
  const any = definitions['Any'];
  const method = any && Object.hasOwn(any, 'txn') ? Reflect.get(any, 'txn') : undefined;
  return (method as { responseDeserialize(bytes: Buffer): unknown }).responseDeserialize(encoded); // the loader's
}

const key = fc.uint8Array({ maxLength: 200 }).map((some) => Buffer.from(some));
const revision = fc.oneof(
  fc.bigInt({ min: 0n, max: 2n ** 63n - 1n }),
  fc.constantFrom(0n, 127n, 128n, 2n ** 32n, 2n ** 53n),
);
const text = revision.map(String);
const range = fc.record(
  {
    key,
    rangeEnd: key,
    limit: fc.nat({ max: 2 ** 40 }),
    revision: text,
    keysOnly: fc.constant(true),
  },
  { requiredKeys: ['key'] },
);
const operation: fc.Arbitrary<RequestOp> = fc.oneof(
  range.map((requestRange) => ({ requestRange })),
  fc.record({ key, value: fc.array(key, { maxLength: 4 }) }).map((requestPut) => ({ requestPut })),
  fc.record({ key, rangeEnd: key }, { requiredKeys: ['key'] }).map((requestDeleteRange) => ({ requestDeleteRange })),
);
const compare: fc.Arbitrary<Compare> = fc.record({
  target: fc.constant('MOD'),
  result: fc.constantFrom('EQUAL', 'GREATER'),
  key,
  modRevision: text,
});

/** As the loader shows it. */
function shown(operation: RequestOp): unknown {
  if ('requestPut' in operation) {
    const { key, value } = operation.requestPut;
    return { requestPut: { key, value: Buffer.concat(value) } };
  }
  if (!('requestRange' in operation) || operation.requestRange.limit === undefined) return operation;
  return { requestRange: { ...operation.requestRange, limit: String(operation.requestRange.limit) } };
}

it('writes transactions as the loader reads them', () => {
  const operations = fc.array(operation, { maxLength: 5 });
  const request: fc.Arbitrary<TxnRequest> = fc.record({
    compare: fc.array(compare, { maxLength: 3 }),
    success: operations,
    failure: operations,
  });
  fc.assert(
    fc.property(request, (txn) => {
      expect(read(encodeTxn(txn))).toEqual({
        compare: txn.compare,
        success: txn.success.map(shown),
        failure: txn.failure.map(shown),
      });
    }),
    { numRuns: 500 },
  );
});

it('writes one of a megabyte', () => {
  const value = Buffer.alloc(1_000_000, 7);
  const success = [{ requestPut: { key: Buffer.from('k'), value: [Buffer.from([1]), value] } }];
  const encoded = encodeTxn({ compare: [], success, failure: [] });
  expect(read(encoded)).toEqual({
    compare: [],
    success: [{ requestPut: { key: Buffer.from('k'), value: Buffer.concat([Buffer.from([1]), value]) } }],
    failure: [],
  });
});
