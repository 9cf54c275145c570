// The files of a program as commands over the runner's port, for a guest that booted before it had one. Pure.

import type { AgentCommand } from './protocol.ts';

/** A shell writes a line with less than 4096 bytes (PIPE_BUF of Linux) into a pipe as one. */
const textBytesMax = 3_000;

/** What no shell and no `read` changes. */
const plain = /^[A-Za-z0-9_.,:/=+@-]$/;

export function putCommands(files: readonly (readonly [name: string, text: string])[]): AgentCommand[] {
  return files.flatMap(([file, text]) =>
    piecesOf(text).map((piece, i): AgentCommand => ({ kind: 'put', file, how: i === 0 ? 'new' : 'more', text: piece })),
  );
}

/** As `printf %b` reads it. `\c` writes nothing: a word cannot be empty. */
function piecesOf(text: string): string[] {
  const pieces: string[] = [];
  let piece = '';
  for (const byte of Buffer.from(text)) {
    const character = String.fromCharCode(byte);
    piece += plain.test(character) ? character : `\\0${byte.toString(8).padStart(3, '0')}`;
    if (piece.length < textBytesMax) continue;
    pieces.push(piece);
    piece = '';
  }
  if (piece !== '' || pieces.length === 0) pieces.push(piece === '' ? String.raw`\c` : piece);
  return pieces;
}
