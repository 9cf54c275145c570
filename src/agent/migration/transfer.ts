// Which piece of a moving guest's files is fetched next. Pure. Each file is fetched from its start to its end, so that where an interrupted
// transfer goes on is one number for each file.

import type { MoveManifest } from '../../api/agent-protocol.ts';
import type { IncomingLook } from './moved-files.ts';

/** One piece is read, checked and made durable at a time. */
export const pieceBytesMax = 64 * 1024 * 1024;

export interface Piece {
  readonly name: string;
  readonly offset: number;
  readonly length: number;
}

/** Undefined: all is here. */
export function nextPiece({ files }: Pick<IncomingLook, 'files'>, bytesMax = pieceBytesMax): Piece | undefined {
  const file = files.find(({ doneBytes, sizeBytes }) => doneBytes < sizeBytes);
  if (file === undefined) return undefined;
  return { name: file.name, offset: file.doneBytes, length: Math.min(bytesMax, file.sizeBytes - file.doneBytes) };
}

/** Whether what was received so far is of these files. */
export function isOf(look: IncomingLook, manifest: MoveManifest): boolean {
  return (
    look.id === manifest.id &&
    look.files.length === manifest.files.length &&
    look.files.every(({ name, sizeBytes }, i) => {
      const file = manifest.files[i];
      return file?.name === name && file.sizeBytes === sizeBytes;
    })
  );
}

export function bytesOf({ files }: Pick<IncomingLook, 'files'>): { readonly bytes: number; readonly ofBytes: number } {
  return {
    bytes: files.reduce((sum, { doneBytes }) => sum + doneBytes, 0),
    ofBytes: files.reduce((sum, { sizeBytes }) => sum + sizeBytes, 0),
  };
}

/** How long to wait after a piece, so that on average no more than `bytesPerSecondMax` pass. */
export function pauseMs(
  piece: { readonly bytes: number; readonly tookMs: number },
  bytesPerSecondMax: number | undefined,
): number {
  if (bytesPerSecondMax === undefined) return 0;
  return Math.max(0, Math.ceil((1000 * piece.bytes) / bytesPerSecondMax - piece.tookMs));
}
