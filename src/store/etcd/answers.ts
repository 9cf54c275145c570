// Decodes etcd's responses to reads by hand: a start reads hundreds of thousands of keys and values, and the generic
// decoder creates three objects for each, plus one per number; here it is one. Unused fields are skipped. From
// rpc.proto and kv.proto of etcd 3.4.

import { embedded, plain, wire } from './wire.ts';

/** A decimal number of 64 bits. */
export type Int64 = string;

export interface KeyValue {
  readonly key: Buffer;
  /** etcd's own revision of the transaction that wrote it, not a revision of Berth. */
  readonly modRevision: Int64;
  readonly value: Buffer;
}

/** A view into the response that contains it; a missing field is empty. */
export class AnsweredKeyValue implements KeyValue {
  /** The whole response. */
  readonly bytes: Buffer;
  keyAt = 0;
  keyEnd = 0;
  /** Below 0: absent. */
  modRevisionAt = -1;
  valueAt = 0;
  valueEnd = 0;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  get key(): Buffer {
    return this.bytes.subarray(this.keyAt, this.keyEnd);
  }

  get modRevision(): Int64 {
    return this.modRevisionAt < 0 ? '0' : new Message(this.bytes, this.modRevisionAt).int64();
  }

  get value(): Buffer {
    return this.bytes.subarray(this.valueAt, this.valueEnd);
  }
}

export interface Header {
  /** etcd's own revision of the response. */
  readonly revision: Int64;
}

export interface RangeResponse {
  readonly header: Header | null;
  readonly kvs: readonly AnsweredKeyValue[];
  /** The limit cut off some entries. */
  readonly more: boolean;
}

export interface TxnResponse {
  readonly header: Header | null;
  readonly succeeded: boolean;
  /** One for each operation, in order. */
  readonly responses: readonly { readonly responseRange?: RangeResponse | null }[];
}

/** Throws when the bytes are not such a message. */
export function decodeRange(bytes: Buffer): RangeResponse {
  return rangeIn(new Message(bytes), bytes.byteLength);
}

/** The same. */
export function decodeTxn(bytes: Buffer): TxnResponse {
  const message = new Message(bytes);
  const responses: { readonly responseRange?: RangeResponse }[] = [];
  let header: Header | null = null;
  let succeeded = false;
  while (message.isBefore(bytes.byteLength)) {
    const tag = message.number();
    if (tag === embedded(1)) header = headerIn(message, message.end());
    else if (tag === plain(2)) succeeded = message.number() !== 0;
    else if (tag === embedded(3)) responses.push(operationIn(message, message.end()));
    else message.skip(tag);
  }
  return { header, succeeded, responses };
}

function operationIn(message: Message, end: number): { readonly responseRange?: RangeResponse } {
  let responseRange: RangeResponse | undefined;
  while (message.isBefore(end)) {
    const tag = message.number();
    if (tag === embedded(1)) responseRange = rangeIn(message, message.end());
    else message.skip(tag);
  }
  return responseRange ? { responseRange } : {};
}

function rangeIn(message: Message, end: number): RangeResponse {
  const kvs: AnsweredKeyValue[] = [];
  let header: Header | null = null;
  let more = false;
  while (message.isBefore(end)) {
    const tag = message.number();
    if (tag === embedded(2)) kvs.push(keyValueIn(message, message.end()));
    else if (tag === embedded(1)) header = headerIn(message, message.end());
    else if (tag === plain(3)) more = message.number() !== 0;
    else message.skip(tag);
  }
  return { header, kvs, more };
}

function headerIn(message: Message, end: number): Header {
  let revision = '0';
  while (message.isBefore(end)) {
    const tag = message.number();
    if (tag === plain(3)) revision = message.int64();
    else message.skip(tag);
  }
  return { revision };
}

function keyValueIn(message: Message, end: number): AnsweredKeyValue {
  const kv = new AnsweredKeyValue(message.bytes);
  while (message.isBefore(end)) {
    const tag = message.number();
    if (tag === embedded(1)) {
      kv.keyEnd = message.end();
      kv.keyAt = message.at;
      message.at = kv.keyEnd;
    } else if (tag === embedded(5)) {
      kv.valueEnd = message.end();
      kv.valueAt = message.at;
      message.at = kv.valueEnd;
    } else {
      if (tag === plain(3)) kv.modRevisionAt = message.at;
      message.skip(tag);
    }
  }
  return kv;
}

/** Reads bytes. Numbers larger than a double can hold are read with `int64` only. */
class Message {
  readonly bytes: Buffer;
  at: number;

  constructor(bytes: Buffer, at = 0) {
    this.bytes = bytes;
    this.at = at;
  }

  /** Seven bits per byte, the lowest first; the last byte is below 128. */
  number(): number {
    let value = 0;
    for (let factor = 1; factor < 2 ** 49; factor *= 128) {
      const byte = this.#byte();
      if (byte < 128) return value + byte * factor;
      value += (byte - 128) * factor;
    }
    throw new Error('an answer of etcd holds a number that is too large');
  }

  int64(): Int64 {
    const { at } = this;
    this.#skipNumber();
    if (this.at - at <= 7) {
      this.at = at;
      return String(this.number());
    }
    let value = 0n;
    for (let i = this.at - 1; i >= at; i--) value = value * 128n + BigInt((this.bytes[i] ?? 0) & 127);
    return String(BigInt.asIntN(64, value));
  }

  /** Whether a message that ends there has more fields. */
  isBefore(end: number): boolean {
    if (this.at > end) throw cutOff();
    return this.at < end;
  }

  /** The end of the following message or bytes. */
  end(): number {
    const length = this.number();
    return this.#checked(this.at + length);
  }

  skip(tag: number): void {
    const kind = tag % 8;
    if (kind === wire.number) this.#skipNumber();
    else if (kind === wire.bytes) this.at = this.end();
    else if (kind === wire.eight) this.at = this.#checked(this.at + 8);
    else if (kind === wire.four) this.at = this.#checked(this.at + 4);
    else throw new Error(`an answer of etcd holds a field of kind ${kind}`);
  }

  #skipNumber(): void {
    while (this.#byte() >= 128);
  }

  #byte(): number {
    const byte = this.bytes[this.at++];
    if (byte === undefined) throw cutOff();
    return byte;
  }

  #checked(end: number): number {
    if (end > this.bytes.byteLength) throw cutOff();
    return end;
  }
}

function cutOff(): Error {
  return new Error('an answer of etcd is cut off');
}
