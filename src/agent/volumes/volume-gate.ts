// Whether a guest may have a volume now, as the volumes' side answers it.

export type VolumeGate =
  | { readonly open: true; readonly path: string }
  /** `path`: where the volume is, for a guest that has it already. */
  | { readonly open: false; readonly why: string; readonly path?: string | undefined };
