// How much may come out of a packed image before it is taken for a bomb. Pure.

const ratioMax = 200;
const floorBytes = 1024 ** 3;

/** 200 times the packed size, and a gibibyte in any case. */
export function bombBytes(packedBytes: number): number {
  return Math.max(floorBytes, ratioMax * packedBytes);
}
