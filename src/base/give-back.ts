// The memory of a large buffer lies outside of V8's heap and is given back when V8 finds the buffer dead. Of one that has lived for a while only
// a full collection does that, and V8 begins one whenever 64 MiB have come together (`kExternalAllocationSoftLimit`, heap.h of V8 13.6).
// Who knows that nobody looks at a buffer any more spares it that: a start on 100,000 instances takes a tenth less time and 30 MB less.

/**
 * Every view of the memory that `bytes` lie in is empty then: all of it must be the caller's. Small Buffers share a piece of 64 KiB with
 * strangers (`Buffer.poolSize`, 8 KiB in older versions of Node); that much, or less, is never given back.
 */
export function giveBack({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer && buffer.byteLength > Buffer.poolSize) buffer.transfer(0);
}
