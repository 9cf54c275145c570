// What an image cache of a host is opened with.

import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import type { CredentialFor } from './credentials/image-credentials.ts';
import type { HttpGet } from './fetch/http-get.ts';
import type { RemoteFile } from './fetch/image-source.ts';

export interface ImageCacheOptions {
  /** Used by this cache only; created with mode 0700. */
  readonly directory: string;
  /**
   * Folders that `file:` sources and `localPath` may be in, besides `directory`. An image's owner need not be the host's owner:
   * without this limit an image `file:///etc/shadow` would show that file to a guest. `['/']` allows all.
   */
  readonly fileRoots: readonly string[];
  /** Folders of guests: the guests' disks show which images are in use. Called each time; default: none. */
  readonly guestRoots?: () => Promise<readonly string[]>;
  /** Limit of disk space for published images and partial downloads. Default: none. */
  readonly bytesMax?: number;
  readonly get: HttpGet;
  /** Of this host. Default: none. */
  readonly credentials?: CredentialFor;
  /** Where the control plane keeps uploaded images. */
  readonly uploaded?: (source: string) => RemoteFile;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Of one image, compressed and decompressed. */
  readonly maxBytes?: number;
  /** The largest disk an image may show to a guest. */
  readonly maxVirtualBytes?: number;
  readonly stallTimeoutMs?: number;
  readonly slowWindowMs?: number;
  readonly slowBytesMin?: number;
  readonly attemptsMax?: number;
  readonly checksumsRequired?: boolean;
  /** Whether the program zstd decompresses. Default: if it is installed. */
  readonly zstdProgram?: boolean;
}
