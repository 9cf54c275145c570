// Encodes transactions by hand: every change is sent to etcd in two of them, and the generic encoder creates objects and copies for each
// field. Here a value is copied once, from its pieces. From rpc.proto of etcd 3.4; fields in the order of their numbers.
//
// A nested message is preceded by its length, so everything is written from the end to the front, and only the maximum size is computed
// beforehand.

import type { Int64 } from './answers.ts';
import { embedded, plain } from './wire.ts';

export interface RangeRequest {
  readonly key: Buffer;
  /** Exclusive; without it only the one key. */
  readonly rangeEnd?: Buffer;
  readonly limit?: number;
  /** 0 or absent: the newest. */
  readonly revision?: Int64;
  readonly keysOnly?: boolean;
}

export interface PutRequest {
  readonly key: Buffer;
  readonly value: Uint8Array;
}

/** In a transaction. */
export interface TxnPut {
  readonly key: Buffer;
  /** The value in one or more pieces. */
  readonly value: readonly Uint8Array[];
}

export interface DeleteRangeRequest {
  readonly key: Buffer;
  readonly rangeEnd?: Buffer;
}

export interface Compare {
  readonly target: 'MOD';
  readonly result: 'EQUAL' | 'GREATER';
  readonly key: Buffer;
  /** 0: the key is absent. */
  readonly modRevision: Int64;
}

export type RequestOp =
  | { readonly requestRange: RangeRequest }
  | { readonly requestPut: TxnPut }
  | { readonly requestDeleteRange: DeleteRangeRequest };

export interface TxnRequest {
  readonly compare: readonly Compare[];
  readonly success: readonly RequestOp[];
  readonly failure: readonly RequestOp[];
}

export function encodeTxn(request: TxnRequest): Buffer {
  const out = new Backwards(mostOf(request));
  for (const operation of request.failure.toReversed()) out.nested(3, () => writeOperation(out, operation));
  for (const operation of request.success.toReversed()) out.nested(2, () => writeOperation(out, operation));
  for (const compare of request.compare.toReversed()) out.nested(1, () => writeCompare(out, compare));
  return out.written();
}

const results = { EQUAL: 0, GREATER: 1 } as const;
const targets = { MOD: 2 } as const;

function writeCompare(out: Backwards, { result, target, key, modRevision }: Compare): void {
  out.int64(6, modRevision);
  out.bytes(3, key);
  out.number(2, targets[target]);
  out.number(1, results[result]);
}

function writeOperation(out: Backwards, operation: RequestOp): void {
  if ('requestRange' in operation) out.nested(1, () => writeRange(out, operation.requestRange));
  else if ('requestPut' in operation) out.nested(2, () => writePut(out, operation.requestPut));
  else out.nested(3, () => writeDeleteRange(out, operation.requestDeleteRange));
}

function writeRange(out: Backwards, { key, rangeEnd, limit, revision, keysOnly }: RangeRequest): void {
  if (keysOnly) out.number(8, 1);
  if (revision !== undefined) out.int64(4, revision);
  if (limit !== undefined) out.number(3, limit);
  if (rangeEnd) out.bytes(2, rangeEnd);
  out.bytes(1, key);
}

function writePut(out: Backwards, { key, value }: TxnPut): void {
  out.pieces(2, value);
  out.bytes(1, key);
}

function writeDeleteRange(out: Backwards, { key, rangeEnd }: DeleteRangeRequest): void {
  if (rangeEnd) out.bytes(2, rangeEnd);
  out.bytes(1, key);
}

/** The maximum for a field: its number, and a length or a 64-bit number. */
const fieldMost = 11;
/** The maximum for an operation or a comparison without its bytes: the enclosing field, and six fields. */
const operationMost = 8 * fieldMost;

function mostOf({ compare, success, failure }: TxnRequest): number {
  let most = 0;
  for (const { key } of compare) most += operationMost + key.byteLength;
  for (const operations of [success, failure]) for (const one of operations) most += operationMost + bytesIn(one);
  return most;
}

function bytesIn(operation: RequestOp): number {
  if ('requestPut' in operation) {
    const { key, value } = operation.requestPut;
    return value.reduce((sum, { byteLength }) => sum + byteLength, key.byteLength);
  }
  const { key, rangeEnd } = 'requestRange' in operation ? operation.requestRange : operation.requestDeleteRange;
  return key.byteLength + (rangeEnd?.byteLength ?? 0);
}

/** Bytes that are written from the end. */
class Backwards {
  readonly #bytes: Buffer;
  #at: number;

  constructor(most: number) {
    this.#bytes = Buffer.allocUnsafe(most);
    this.#at = most;
  }

  written(): Buffer {
    return this.#bytes.subarray(this.#at);
  }

  nested(field: number, write: () => void): void {
    const end = this.#at;
    write();
    this.#varint(end - this.#at);
    this.#varint(embedded(field));
  }

  bytes(field: number, bytes: Uint8Array): void {
    this.pieces(field, [bytes]);
  }

  /** One field with all pieces in a row. */
  pieces(field: number, pieces: readonly Uint8Array[]): void {
    this.nested(field, () => {
      for (const piece of pieces.toReversed()) this.#put(piece);
    });
  }

  /** Must not be negative. */
  number(field: number, value: number): void {
    this.#varint(value);
    this.#varint(plain(field));
  }

  int64(field: number, value: string): void {
    const small = Number(value);
    if (Number.isSafeInteger(small) && small >= 0) this.#varint(small);
    else this.#varint64(BigInt.asUintN(64, BigInt(value)));
    this.#varint(plain(field));
  }

  #put(bytes: Uint8Array): void {
    this.#at -= bytes.byteLength;
    this.#bytes.set(bytes, this.#at);
  }

  /** Seven bits per byte, the lowest first; the last byte is below 128. */
  #varint(value: number): void {
    let length = 1;
    for (let over = value; over >= 128; over = Math.floor(over / 128)) length += 1;
    this.#at -= length;
    let at = this.#at;
    let left = value;
    for (; left >= 128; left = Math.floor(left / 128)) this.#bytes[at++] = (left % 128) + 128;
    this.#bytes[at] = left;
  }

  #varint64(value: bigint): void {
    const bytes: number[] = [];
    let left = value;
    for (; left >= 128n; left /= 128n) bytes.push(Number(left % 128n) + 128);
    bytes.push(Number(left));
    this.#put(Uint8Array.from(bytes));
  }
}
