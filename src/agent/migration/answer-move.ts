// Answers the requests of a move's target for the files of the guest: through the control plane, or directly.
//
//   GET  /guests/{instanceId}/moves/{id}                                the files of a guest that moves to another host
//   GET  /guests/{instanceId}/moves/{id}/live                           what a guest that runs consists of
//   GET  /guests/{instanceId}/moves/{id}/sent                           whether it was sent, and stands still
//   GET  /guests/{instanceId}/moves/{id}/{file}?offset=N&length=N       a piece of one, after its SHA-256

import { constants, type ServerHttp2Stream } from 'node:http2';
import { ApiError } from '../../api/errors.ts';
import type { Move, Outgoing } from './move.ts';
import type { Piece } from './transfer.ts';

export interface MoveAsked {
  readonly move: Move;
  /** Absent: the list of files. */
  readonly piece?: Piece;
  /** For a running guest. */
  readonly live?: 'machine' | 'sent';
}

/** Undefined: the request is about something else. */
export function moveAsked({ pathname, searchParams }: URL): MoveAsked | undefined {
  const [, instanceId, id, name] = pattern.exec(pathname) ?? [];
  if (instanceId === undefined || id === undefined) return undefined;
  const move = { instanceId, id };
  if (name === undefined) return { move };
  if (name === 'live') return { move, live: 'machine' };
  if (name === 'sent') return { move, live: 'sent' };
  return { move, piece: { name, offset: bytesOf(searchParams, 'offset'), length: bytesOf(searchParams, 'length') } };
}

const pattern = /^\/guests\/(inst_[0-9a-z]{26})\/moves\/(mig_[0-9a-z]{26})(?:\/(live|sent|disk|vol_[0-9a-z]{26}))?$/;

export async function answerMove(outgoing: Outgoing, stream: ServerHttp2Stream, asked: MoveAsked): Promise<void> {
  const { move, piece } = asked;
  const bytes =
    piece === undefined
      ? Buffer.from(JSON.stringify(await wordsFor(outgoing, asked)))
      : await outgoing.read(move, piece);
  stream.respond({
    [constants.HTTP2_HEADER_STATUS]: 200,
    [constants.HTTP2_HEADER_CONTENT_TYPE]: piece === undefined ? 'application/json' : 'application/octet-stream',
  });
  stream.end(bytes);
}

async function wordsFor(outgoing: Outgoing, { move, live }: MoveAsked): Promise<unknown> {
  switch (live) {
    case 'machine':
      return outgoing.machine(move);
    case 'sent':
      return { sent: await outgoing.sent(move) };
    case undefined:
      return outgoing.manifest(move);
  }
}

export function bytesOf(query: URLSearchParams, field: string): number {
  const text = query.get(field) ?? '0';
  const value = Number(text);
  if (!/^\d{1,16}$/.test(text) || !Number.isSafeInteger(value))
    throw new ApiError('InvalidRequest', `${field} must be a whole number of bytes`, { field });
  return value;
}
