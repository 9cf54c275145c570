// How Protocol Buffers write a field: what stands before it. From the encoding guide of protobuf.dev.

/** A number of variable length; eight bytes; bytes or a message, after their length; four bytes. */
export const wire = { number: 0, eight: 1, bytes: 2, four: 5 } as const;

/** What stands before field `id`, a number. */
export function plain(id: number): number {
  return 8 * id + wire.number;
}

/** What stands before field `id`, bytes or a message. */
export function embedded(id: number): number {
  return 8 * id + wire.bytes;
}
