// Requests the source of a live move to send its guest, and follows the progress: one JSON object per line; the last one says that everything was
// sent.

import { type ClientHttp2Session, constants } from 'node:http2';
import { createInterface } from 'node:readline';
import { ApiError, isErrorCode } from '../../../api/errors.ts';
import { isRecord } from '../../../base/is-record.ts';
import type { MoveProgress } from '../move.ts';

/**
 * Resolves with the milliseconds for which the guest has been paused. Throws the error of the source, or `HostUnreachable`: then it is unknown
 * whether everything was sent.
 */
export async function askToSend(
  session: ClientHttp2Session,
  path: string,
  onProgress: (seen: MoveProgress) => void,
  signal: AbortSignal,
): Promise<number> {
  const stream = session.request({ ':path': path, ':method': 'POST' }, { signal });
  stream.end();
  let refused: unknown;
  stream.on('error', (error) => {
    refused = error;
  });
  try {
    for await (const line of createInterface({ input: stream })) {
      const said: unknown = JSON.parse(line);
      if (!isRecord(said)) break;
      const { stillMs } = said;
      if (said['sent'] === true) return typeof stillMs === 'number' ? stillMs : 0; // an agent of an earlier version does not say it
      if (said['error'] !== undefined) throw refusalIn(Buffer.from(line), 0);
      const { bytes, ofBytes } = said;
      if (typeof bytes === 'number' && typeof ofBytes === 'number') onProgress({ bytes, ofBytes });
    }
  } finally {
    if (!stream.closed) stream.close(constants.NGHTTP2_CANCEL);
  }
  throw new ApiError('HostUnreachable', 'the connection to the host that the guest leaves broke', { cause: refused });
}

export function refusalIn(body: Buffer, status: number): ApiError {
  try {
    const value: unknown = JSON.parse(body.toString());
    const error = isRecord(value) ? value['error'] : undefined;
    const { code, message } = isRecord(error) ? error : {};
    if (typeof code === 'string' && isErrorCode(code) && typeof message === 'string')
      return new ApiError(code, message);
  } catch {
    // Not JSON: the status is all there is.
  }
  return new ApiError('Internal', `the host that the guest leaves answered ${status}`);
}
