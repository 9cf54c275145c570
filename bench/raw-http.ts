// HTTP/1.1 by hand over kept connections: as little work as a load generator can do, so that the server has the machine. It knows
// only what our server answers: content-length for answers, chunks for streams.

import { once } from 'node:events';
import { get } from 'node:http';
import { connect, type Socket } from 'node:net';

export interface RawAnswer {
  readonly status: number;
  readonly body: Buffer;
}

const nothing = Buffer.alloc(0);

type Waiting = (answer: RawAnswer) => void;

export interface RawConnection {
  /** Requests sent before the answer to the one before it has come are pipelined. */
  send(request: Buffer, answered: Waiting): void;
  close(): void;
}

export interface Target {
  readonly url: string;
  readonly token: string;
}

export function encodeRequest({ url, token }: Target, method: string, path: string, body: unknown): Buffer {
  const text = JSON.stringify(body);
  return Buffer.from(
    `${method} ${path} HTTP/1.1\r\nhost: ${new URL(url).host}\r\nauthorization: Bearer ${token}\r\n` +
      `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(text)}\r\n\r\n${text}`,
  );
}

export async function connectRaw(url: string): Promise<RawConnection> {
  const { hostname, port } = new URL(url);
  const socket: Socket = connect({ host: hostname, port: Number(port), noDelay: true });
  await once(socket, 'connect');
  const waiting: Waiting[] = [];
  let first = 0;
  let rest: Buffer | undefined;
  const pieces: Buffer[] = [];
  let missing = 0;
  socket.on('data', (bytes: Buffer) => {
    let buffer = rest ? Buffer.concat([rest, bytes]) : bytes;
    // The rest of a long answer is put together once, when all of it is there.
    if (pieces.length > 0) {
      pieces.push(bytes);
      missing -= bytes.length;
      if (missing > 0) return;
      buffer = Buffer.concat(pieces.splice(0));
    }
    for (;;) {
      const headEnd = buffer.indexOf('\r\n\r\n');
      if (headEnd < 0) break;
      const head = buffer.toString('latin1', 0, headEnd);
      const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? (head.startsWith('204', 9) ? 0 : Number.NaN));
      if (Number.isNaN(length)) throw new Error(`an answer without a content-length: ${head}`);
      const end = headEnd + 4 + length;
      if (buffer.length < end) {
        missing = end - buffer.length;
        pieces.push(buffer);
        buffer = nothing;
        break;
      }
      const answered = waiting[first++];
      if (first === waiting.length) waiting.length = first = 0;
      answered?.({ status: Number(head.slice(9, 12)), body: buffer.subarray(headEnd + 4, end) });
      buffer = buffer.subarray(end);
    }
    rest = buffer.length > 0 ? buffer : undefined;
  });
  return {
    send(request, answered) {
      waiting.push(answered);
      socket.write(request);
    },
    close: () => socket.destroy(),
  };
}

/** Calls `told` with whole lines as they come, many at once, endlessly; resolves once the stream has begun. */
export function followLines(
  { url, token }: Target,
  path: string,
  told: (lines: string) => void,
): Promise<{ close(): void }> {
  return new Promise((resolve, reject) => {
    const request = get(`${url}${path}`, { headers: { authorization: `Bearer ${token}` } }, (response) => {
      if (response.statusCode !== 200) return reject(new Error(`${path} answered ${response.statusCode}`));
      let rest = '';
      response.setEncoding('latin1');
      response.on('data', (text: string) => {
        const end = text.lastIndexOf('\n') + 1;
        if (end > 0) told(rest + text.slice(0, end));
        rest = end > 0 ? text.slice(end) : rest + text;
      });
      response.on('error', () => {}); // closed by us
      resolve({ close: () => request.destroy() });
    });
    request.on('error', reject);
  });
}
