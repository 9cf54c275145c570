// Cursors of tools that list: opaque to clients, and good for the same question only.

import { ApiError } from '../../api/errors.ts';
import { isRecord } from '../../base/is-record.ts';

/** `question`: what was asked, as JSON text. */
export function cursorOf(question: string, next: string | undefined): string | undefined {
  return next === undefined ? undefined : Buffer.from(JSON.stringify({ question, next })).toString('base64url');
}

/** Throws `InvalidRequest` for a cursor of another question. */
export function nextOf(question: string, cursor: string | undefined): string | undefined {
  if (cursor === undefined) return undefined;
  const read = parsed(Buffer.from(cursor, 'base64url').toString());
  if (isRecord(read) && read['question'] === question && typeof read['next'] === 'string') return read['next'];
  throw new ApiError('InvalidRequest', 'this cursor is of another question; ask again without it', { field: 'cursor' });
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
