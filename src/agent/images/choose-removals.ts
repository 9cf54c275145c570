// Chooses which files of an image cache to remove when it is over its budget: pure. It never chooses a file that a guest uses, that
// is kept, or that was handed out recently; of the others the least recently requested are removed first.

export interface CachedFile {
  readonly path: string;
  /** Its disk space: holes take none. */
  readonly allocatedBytes: number;
  readonly usedAtMs: number;
  /** The number of guests' disks that are overlays of it. */
  readonly guests: number;
  /** Pinned, preloaded, or handed out so recently that its guest may not have a disk yet. */
  readonly kept: boolean;
}

/** In the order of removal; fewer than needed if the other files must stay. */
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
