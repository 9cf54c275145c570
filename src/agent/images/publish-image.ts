// Fetches one image, checks it and publishes it: under the digest of its content, and under its `localPath` if it has one.
// A failure leaves at most a partial download that a later attempt can resume.

import { link, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { gibibyte } from '../../base/bytes.ts';
import type { Places } from '../../base/places.ts';
import { DriverError } from '../host/driver-error.ts';
import { diskError } from './disk-error.ts';
import { diskFormat } from './disk-format.ts';
import { dropPartial, type FetchedImage, fetchImage, type FetchJob, type FetchOptions } from './fetch/fetch-image.ts';
import { printableUrl } from './fetch/http-get.ts';
import type { ImageCacheOptions } from './image-cache-options.ts';
import type { ImageRecord } from './image-record.ts';
import { hiddenPath, refuseOutsideRoots } from './image-roots.ts';
import { recordPath, unchanged } from './record-files.ts';
import type { Turns } from './turns.ts';
import { publish, writeSmallFile } from './unpack/image-file.ts';
import { defaultVirtualBytesMax } from './unpack/image-gate.ts';

export interface PublishParts {
  readonly options: ImageCacheOptions;
  readonly records: Map<string, ImageRecord>;
  /** Publishing and removing files exclude each other. */
  readonly inTurn: Turns;
  readonly unpackers: Places;
}

export async function fetchAndPublish(job: FetchJob, parts: PublishParts): Promise<ImageRecord> {
  const { options, records, inTurn, unpackers } = parts;
  const { name, image, key } = job;
  const { directory, log } = options;
  let temporary = join(directory, `${key}.unpacking`);
  try {
    const hidden = await hiddenPath(image, key, options);
    if (hidden !== undefined) temporary = `${hidden}.unpacking`; // on the disk of its final place
    log.info('fetching image', { image: name, source: printableUrl(image.source) });
    const fetched = await fetchImage(job, temporary, fetchOptions(options, unpackers));
    const record = await inTurn.run(() => publishOnce(job, { temporary, hidden, fetched }, { directory, records }));
    await dropPartial(directory, key);
    const { digest, sizeBytes, sourceChecksum } = record;
    log.info('image is ready', { image: name, digest, bytes: sizeBytes, checksum: sourceChecksum });
    return record;
  } catch (error) {
    const failure = diskError(error, `fetch image "${name}"`);
    await rm(temporary, { force: true });
    // Only an interrupted download can be resumed. An invalid image, or one that filled the disk, is removed at once.
    const resumable = failure.code === 'Aborted' || failure.code === 'ImageUnavailable';
    if (!resumable) await dropPartial(directory, key);
    throw failure;
  }
}

function fetchOptions(options: ImageCacheOptions, unpackers: Places): FetchOptions {
  const { directory, get, uploaded, clock, prng, log } = options;
  return {
    ...{ directory, get, clock, prng, log, unpackers },
    ...(uploaded === undefined ? {} : { uploaded }),
    ...(options.zstdProgram === undefined ? {} : { zstdProgram: options.zstdProgram }),
    allowFile: (path) => refuseOutsideRoots(path, options, 'an image comes from'),
    maxBytes: options.maxBytes ?? 64 * gibibyte,
    maxVirtualBytes: options.maxVirtualBytes ?? defaultVirtualBytesMax,
    stallTimeoutMs: options.stallTimeoutMs ?? 30_000,
    slowWindowMs: options.slowWindowMs ?? 30_000,
    slowBytesMin: options.slowBytesMin ?? 256 * 1024, // 9 kB/s: a gigabyte in a day
    attemptsMax: options.attemptsMax ?? 5,
    checksumsRequired: options.checksumsRequired ?? false,
  };
}

interface ToPublish {
  readonly temporary: string;
  /** For an image with a `localPath`: its hidden name beside it. */
  readonly hidden: string | undefined;
  readonly fetched: FetchedImage;
}

/** Renames the checked file to its final name. If the same content is here already, that file gets a second name instead. */
async function publishOnce(
  { name, image, key }: FetchJob,
  { temporary, hidden, fetched }: ToPublish,
  { directory, records }: { readonly directory: string; readonly records: Map<string, ImageRecord> },
): Promise<ImageRecord> {
  const path = hidden ?? join(directory, `${fetched.digest.replace(':', '-')}.img`);
  const twin = await twinOf(fetched.digest, path, records);
  // In the record's folder, writing the record makes the name durable too; a record without its image is ignored.
  const giveItsName = hidden === undefined ? rename : publish;
  if (twin === undefined || (twin !== path && !(await linked(twin, path)))) await giveItsName(temporary, path);
  else await rm(temporary, { force: true });
  const { mtimeMs } = await stat(path);
  const record: ImageRecord = {
    key,
    names: [...(records.get(key)?.names ?? [])],
    path,
    format: diskFormat(name, image),
    ...fetched,
    changedAtMs: mtimeMs,
  };
  if (image.localPath !== undefined) {
    await linkAt(path, image.localPath, name, records).catch(async (error: unknown) => {
      if (twin !== path) await rm(path, { force: true });
      throw error;
    });
  }
  await writeSmallFile(recordPath(directory, key), JSON.stringify(record));
  records.set(key, record);
  return record;
}

/** An unchanged file with this content; `path` itself if it is one. */
async function twinOf(
  digest: string,
  path: string,
  records: ReadonlyMap<string, ImageRecord>,
): Promise<string | undefined> {
  const same = [...records.values()].filter((record) => record.digest === digest);
  for (const record of same.toSorted((a, b) => Number(b.path === path) - Number(a.path === path)))
    if (await unchanged(record)) return record.path;
  return undefined;
}

/** False if the file system cannot give a second name: another disk, or too many names. */
async function linked(from: string, to: string): Promise<boolean> {
  const temporary = `${to}.link`;
  try {
    await rm(temporary, { force: true });
    await link(from, temporary);
    await rename(temporary, to);
    await rm(temporary, { force: true }); // rename(2) leaves two names of one file as they are, and an agent that died here leaves two
    return true;
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    if (code === 'EXDEV' || code === 'EMLINK' || code === 'EPERM' || code === 'ENOTSUP') return false;
    throw error;
  }
}

/**
 * Gives the image its `localPath` as a second name of the same file. A later version takes the name over; the file under the
 * hidden name stays, for the guests that use it. A file that is not ours is never replaced.
 */
async function linkAt(
  path: string,
  localPath: string,
  name: string,
  records: ReadonlyMap<string, ImageRecord>,
): Promise<void> {
  const there = await stat(localPath).catch(() => undefined);
  if (there) {
    const ours = await Promise.all(
      [...records.values()].map(async (record) => (await stat(record.path).catch(() => undefined))?.ino),
    );
    const same = (await stat(path)).ino === there.ino;
    if (same) return;
    if (!ours.includes(there.ino)) {
      throw new DriverError(
        'ImageInvalid',
        `image "${name}" cannot be put at ${localPath}: there is a file already that Berth did not make; move it away, or set another localPath`,
      );
    }
  }
  const temporary = `${path}.link`;
  await rm(temporary, { force: true });
  await link(path, temporary);
  await rename(temporary, localPath);
}
