// The tags of Protocol Buffers fields. From the encoding guide of protobuf.dev.

/** A variable-length number; eight bytes; bytes or a message with a length; four bytes. */
export const wire = { number: 0, eight: 1, bytes: 2, four: 5 } as const;

/** The tag of field `id`, a number. */
export function plain(id: number): number {
  return 8 * id + wire.number;
}

/** The tag of field `id`, bytes or a message. */
export function embedded(id: number): number {
  return 8 * id + wire.bytes;
}
