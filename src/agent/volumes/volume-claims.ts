// Who is about to do something with a volume's file: a guest that is made or started with it, or the change of a file that is not open.
// Two never do at once. It knows only what goes on in this process; the locks of the file itself are what holds against others.

export interface VolumeClaims {
  /** All of them or none. Answers who else has one of them, if so. */
  take(volumeIds: readonly string[], owner: string): { readonly volumeId: string; readonly by: string } | undefined;
  release(owner: string): void;
}

/** `onRelease` is called for each released volume whose claim was refused meanwhile. */
export function createVolumeClaims(onRelease: (volumeId: string) => void): VolumeClaims {
  const owners = new Map<string, string>();
  const refused = new Set<string>();
  return {
    take(volumeIds, owner) {
      for (const volumeId of volumeIds) {
        const by = owners.get(volumeId);
        if (by === undefined || by === owner) continue;
        refused.add(volumeId);
        return { volumeId, by };
      }
      for (const volumeId of volumeIds) owners.set(volumeId, owner);
      return undefined;
    },
    release(owner) {
      const freed = [...owners].filter(([, by]) => by === owner).map(([volumeId]) => volumeId);
      for (const volumeId of freed) owners.delete(volumeId);
      for (const volumeId of freed) if (refused.delete(volumeId)) onRelease(volumeId);
    },
  };
}
