// XDR (RFC 4506), as far as libvirt's protocol uses it: everything is big-endian and a multiple of four bytes long.

export interface XdrWriter {
  int(value: number): XdrWriter;
  uint(value: number): XdrWriter;
  /** 64 bits, without a sign. */
  uhyper(value: number): XdrWriter;
  /** Fixed length: its own bytes, and padding. */
  opaque(bytes: Uint8Array): XdrWriter;
  string(text: string): XdrWriter;
  /** A string that may be missing. */
  maybeString(text: string | undefined): XdrWriter;
  bytes(): Buffer;
}

export function xdrWriter(): XdrWriter {
  const parts: Uint8Array[] = [];
  const word = (write: (into: Buffer) => void): XdrWriter => {
    const into = Buffer.alloc(4);
    write(into);
    parts.push(into);
    return writer;
  };
  const writer: XdrWriter = {
    int: (value) => word((into) => into.writeInt32BE(value)),
    uint: (value) => word((into) => into.writeUInt32BE(value)),
    uhyper(value) {
      const into = Buffer.alloc(8);
      into.writeBigUInt64BE(BigInt(value));
      parts.push(into);
      return writer;
    },
    opaque(bytes) {
      parts.push(bytes, Buffer.alloc(paddingOf(bytes.length)));
      return writer;
    },
    string(text) {
      const bytes = Buffer.from(text);
      return writer.uint(bytes.length).opaque(bytes);
    },
    maybeString: (text) => (text === undefined ? writer.uint(0) : writer.uint(1).string(text)),
    bytes: () => Buffer.concat(parts),
  };
  return writer;
}

/** Reading beyond the end, or a length that cannot be. */
export class XdrError extends Error {
  override name = 'XdrError';
}

export interface XdrReader {
  int(): number;
  uint(): number;
  /** 64 bits; those of a size or a time fit into a number. */
  hyper(): number;
  opaque(length: number): Buffer;
  string(): string;
  maybeString(): string | undefined;
  maybe<Value>(read: (from: XdrReader) => Value): Value | undefined;
  array<Value>(read: (from: XdrReader) => Value): Value[];
}

export function xdrReader(bytes: Buffer): XdrReader {
  let at = 0;
  const take = (length: number): Buffer => {
    if (length > bytes.length - at)
      throw new XdrError(`${length} bytes were announced, ${bytes.length - at} are there`);
    const taken = bytes.subarray(at, at + length);
    at += length;
    return taken;
  };
  const reader: XdrReader = {
    int: () => take(4).readInt32BE(),
    uint: () => take(4).readUInt32BE(),
    hyper: () => Number(take(8).readBigInt64BE()),
    opaque(length) {
      const value = take(length);
      take(paddingOf(length));
      return value;
    },
    string: () => reader.opaque(reader.uint()).toString(),
    maybeString: () => reader.maybe(() => reader.string()),
    maybe: (read) => (reader.uint() === 0 ? undefined : read(reader)),
    array(read) {
      const count = reader.uint();
      // Nothing that is listed takes less than four bytes.
      if (count * 4 > bytes.length - at) throw new XdrError(`${count} items were announced, which cannot be`);
      return Array.from({ length: count }, () => read(reader));
    },
  };
  return reader;
}

function paddingOf(length: number): number {
  return (4 - (length % 4)) % 4;
}
