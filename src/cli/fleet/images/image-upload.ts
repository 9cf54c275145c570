// `berth image upload FILE NAME`: uploads a file to the control plane in pieces, so that an interrupted upload can be
// resumed. The control plane checks it before it becomes the image.

import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import { Command } from 'commander';
import { ApiError } from '../../../api/errors.ts';
import type { Image, ImageSpec } from '../../../api/resources/image.ts';
import { isRecord } from '../../../base/is-record.ts';
import { sleep } from '../../../base/clock.ts';
import type { Cli } from '../../cli.ts';
import { attempting, Interrupted, usageError } from '../../exit-codes.ts';
import { fileFailure } from '../../options/file-failure.ts';
import { type AmountOptions, amountsOf, imageFormats, imagePackings, oneOf, packingOf } from './image-options.ts';
import { startProgress } from '../../print/progress.ts';
import { replace } from '../../replace.ts';
import { openSession, type Session } from '../../session.ts';
import { bytes } from '../../options/units.ts';

interface UploadOptions extends AmountOptions {
  readonly format?: string;
  readonly decompress?: string;
  readonly architecture?: string;
}

/** Small enough for a slow connection within the minute that a request may take: 8 MiB in 60 s are 1.1 Mbit/s. */
const pieceBytes = 8 * 1024 * 1024;
const triesMax = 5;
const retryDelayMs = 1000;

export function uploadCommand(cli: Cli): Command {
  return new Command('upload')
    .description('Upload a file to the control plane as an image; hosts fetch it from there')
    .argument('<file>')
    .argument('<name>')
    .option('--format <format>', `${imageFormats.join(' or ')}; default: qcow2`)
    .option('--decompress <packing>', `${imagePackings.join(', ')}; default: by the ending of the file's name`)
    .option('--architecture <architecture>', 'amd64 or arm64; default: amd64')
    .option('--cpus <count>', "for instances that do not set it; default: their pool's, else 4")
    .option('--memory <amount>', "for instances that do not set it; default: their pool's, else 8 GiB")
    .option('--disk <amount>', 'for instances that do not set it')
    .action(async (path: string, name: string, options: UploadOptions, command: Command) => {
      const defaults = amountsOf(options);
      const { format, decompress, architecture } = options;
      const how = {
        format: format === undefined ? undefined : oneOf('--format', format, imageFormats),
        decompress: decompress === undefined ? packingOf(path) : oneOf('--decompress', decompress, imagePackings),
        architecture,
      };
      const session = await openSession(cli, command);
      const file = await open(path, 'r').catch((error: unknown) => {
        throw fileFailure(error, `read ${path}`);
      });
      try {
        const image = await attempting(`upload image "${name}"`, () => upload(cli, session, { file, path, name, how }));
        if (Object.keys(defaults).length > 0) {
          const change = ({ spec }: Image): ImageSpec => ({ ...spec, defaults: { ...spec.defaults, ...defaults } });
          await attempting(`change image "${name}"`, () => replace(session.client, { kind: 'image', name, change }));
        }
        cli.stdout.write(`image ${image.metadata.name} uploaded (${bytes(image.spec.sizeBytes ?? 0)})\n`);
      } finally {
        await file.close();
      }
    });
}

interface Upload {
  readonly file: FileHandle;
  readonly path: string;
  readonly name: string;
  readonly how: Readonly<Record<'format' | 'decompress' | 'architecture', string | undefined>>;
}

async function upload(cli: Cli, { client }: Session, { file, path, name, how }: Upload): Promise<Image> {
  const stat = await file.stat();
  if (!stat.isFile()) throw usageError(`cannot read ${path}: it is not a file`);
  const { size } = stat;
  if (size === 0) throw usageError(`${path} is empty`);
  const signal = cli.interruption();
  const progress = startProgress(cli);
  const tell = (what: string, done: number): void =>
    progress.update(`${name}: ${what} ${Math.floor((100 * done) / size)} %`);
  try {
    const checksum = await checksumOf(file, (done) => {
      if (signal.aborted) throw new Interrupted();
      tell('reading', done);
    });
    let failures = 0;
    for (let offset = 0; ; ) {
      if (signal.aborted) throw new Interrupted();
      const piece = await readPiece(file, offset);
      try {
        const answer: unknown = await client.json(`/v1/images/${encodeURIComponent(name)}/content`, {
          method: 'PUT',
          query: { checksum, totalBytes: size, offset, ...how },
          bytes: piece,
          signal,
        });
        failures = 0;
        if (isRecord(answer) && answer['complete'] === true) return answer['image'] as Image; // the codec: the server's schema
        offset = receivedIn(answer) ?? offset + piece.length;
        tell('uploading', offset);
      } catch (error) {
        if (signal.aborted) throw new Interrupted();
        const received = error instanceof ApiError && error.code === 'Conflict' ? receivedIn(error.details) : undefined;
        if (received !== undefined && received <= size && received !== offset) {
          offset = received; // an earlier upload came this far
          continue;
        }
        const mayHelp = error instanceof ApiError && (error.code === 'Unavailable' || error.code === 'Conflict');
        if (!mayHelp || ++failures === triesMax) throw error;
        await sleep(cli.clock, retryDelayMs * failures, signal);
      }
    }
  } finally {
    progress.end();
  }
}

function receivedIn(answer: unknown): number | undefined {
  const { receivedBytes } = isRecord(answer) ? answer : {};
  return typeof receivedBytes === 'number' ? receivedBytes : undefined;
}

async function checksumOf(file: FileHandle, onRead: (bytes: number) => void): Promise<string> {
  const hash = createHash('sha256');
  for (let at = 0; ; ) {
    const piece = await readPiece(file, at);
    if (piece.length === 0) return `sha256:${hash.digest('hex')}`;
    hash.update(piece);
    at += piece.length;
    onRead(at);
  }
}

async function readPiece(file: FileHandle, at: number): Promise<Uint8Array<ArrayBuffer>> {
  const piece = Buffer.alloc(pieceBytes);
  const { bytesRead } = await file.read(piece, 0, pieceBytes, at);
  return piece.subarray(0, bytesRead);
}
