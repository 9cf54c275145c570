// Which files of an image cache go when it is over its budget: pure. Never one that a guest lies upon, that someone keeps, or that was
// handed out a moment ago; of the others those go first that nobody has asked for the longest.

export interface CachedFile {
  readonly path: string;
  /** What it takes of the disk: holes cost nothing. */
  readonly allocatedBytes: number;
  readonly usedAtMs: number;
  /** So many guests' disks lie upon it. */
  readonly guests: number;
  /** Pinned, preloaded, or handed out so lately that its guest may not have a disk yet. */
  readonly kept: boolean;
}

/** In the order in which they go; fewer than needed where what is left must stay. */
export function chooseRemovals(
  files: readonly CachedFile[],
  { bytesMax, otherBytes }: { readonly bytesMax: number; readonly otherBytes: number },
): CachedFile[] {
  let bytes = files.reduce((sum, file) => sum + file.allocatedBytes, otherBytes);
  const removable = files.filter(({ kept, guests }) => !kept && guests === 0);
  const chosen: CachedFile[] = [];
  for (const file of removable.toSorted((a, b) => a.usedAtMs - b.usedAtMs)) {
    if (bytes <= bytesMax) break;
    chosen.push(file);
    bytes -= file.allocatedBytes;
  }
  return chosen;
}
