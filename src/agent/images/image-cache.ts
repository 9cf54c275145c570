// The contract of a host's image cache: one copy of each image, complete or not there at all.

import type { ImageSpec } from '../../api/agent-protocol.ts';

export interface CachedImage {
  /** Absolute path of the unpacked image. Read-only: guests get overlays. */
  readonly path: string;
  readonly format: 'qcow2' | 'raw';
  /** `sha256:<hex>` of the unpacked file. */
  readonly digest: string;
  /** The size a guest sees, in bytes. */
  readonly virtualSizeBytes: number;
}

export interface ImageProgress {
  readonly stage: 'downloading' | 'unpacking' | 'checking';
  readonly doneBytes: number;
  /** Absent when the source does not say. */
  readonly totalBytes?: number;
}

export interface ImageCache {
  /**
   * The image, fetched and checked if it is not here yet. Callers that ask for the same image at once share one download.
   * Throws `DriverError` (`ImageUnavailable`, `ImageChecksumMismatch`, `ImageInvalid`, `ImageTooLarge`, `DiskFull`, `Aborted`);
   * then nothing half-written stands under the image's path.
   */
  ensure(
    name: string,
    image: ImageSpec,
    options: { readonly signal: AbortSignal; readonly onProgress?: (progress: ImageProgress) => void },
  ): Promise<CachedImage>;
  /** What is here, for the host's report. */
  list(): Promise<readonly ListedImage[]>;
}

export interface ListedImage {
  readonly name: string;
  readonly digest: string;
  readonly sizeBytes: number;
  /** `sha256:<hex>` of the file at the source, as it was fetched. */
  readonly checksum?: string;
  /** So many guests' disks lie upon it; absent for none, or when nobody has looked yet. */
  readonly guests?: number;
}
