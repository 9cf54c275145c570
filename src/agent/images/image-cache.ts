// The contract of a host's image cache: one copy of each image, either complete or absent.

import type { ImageSpec } from '../../api/agent-protocol.ts';
import type { GuestCredentials } from './credentials/image-credentials.ts';

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
  /** Absent when the source does not report it. */
  readonly totalBytes?: number;
}

export interface ImageCache {
  /**
   * The image, fetched and checked if it is not here yet. Callers that ask for the same image at once share one download.
   * Throws `DriverError` (`ImageUnavailable`, `ImageChecksumMismatch`, `ImageInvalid`, `ImageTooLarge`, `DiskFull`, `Aborted`);
   * then no incomplete file has the image's path.
   */
  ensure(
    name: string,
    image: ImageSpec,
    options: {
      readonly signal: AbortSignal;
      readonly onProgress?: (progress: ImageProgress) => void;
      /** Of the guest that needs it, before those of the host. */
      readonly own?: GuestCredentials | undefined;
    },
  ): Promise<CachedImage>;
  /** The cached images, for the host's report. */
  list(): Promise<readonly ListedImage[]>;
}

export interface ListedImage {
  readonly name: string;
  readonly digest: string;
  readonly sizeBytes: number;
  /** `sha256:<hex>` of the file at the source, as it was fetched. */
  readonly checksum?: string;
  /** The number of guests' disks that are overlays of it; absent for none, or before the first count. */
  readonly guests?: number;
}
