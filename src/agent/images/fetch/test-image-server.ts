// A small HTTP server with files and faults, for tests: ranges, cuts, stalls, redirects. Loopback only.

import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';

export interface ServedFile {
  bytes: Buffer;
  etag?: string;
  /** This many answers stall; the later ones are whole. Default: all. */
  faults?: number;
  /** The answer stops after this many bytes. */
  stallAfter?: number;
  /** Ranges are answered without an If-Range, too: what asks has its own way to tell. */
  anyRange?: boolean;
  status?: number;
  headers?: Record<string, string>;
  /** Called once per request, after its head is known. */
  onRequest?: (request: IncomingMessage) => void;
}

export interface ImageServer {
  readonly url: string;
  readonly files: Map<string, ServedFile>;
  /** `GET /path range` of each request so far. */
  readonly requests: string[];
  /** Breaks all connections. */
  cut(): void;
  close(): Promise<void>;
}

export async function startImageServer(): Promise<ImageServer> {
  const files = new Map<string, ServedFile>();
  const requests: string[] = [];
  const server = createServer((request, response) => {
    requests.push(`GET ${request.url} ${request.headers.range ?? 'whole'}`);
    const file = files.get(request.url ?? '');
    file?.onRequest?.(request);
    if (file) answer(file, request, response);
    else response.writeHead(404).end('nothing here');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const address = server.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    files,
    requests,
    cut: () => server.closeAllConnections(),
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function answer(file: ServedFile, request: IncomingMessage, response: ServerResponse): void {
  const range = /^bytes=(\d+)-$/.exec(request.headers.range ?? '');
  const asked = request.headers['if-range'];
  const fresh = (file.etag !== undefined && asked === file.etag) || (file.anyRange === true && asked === undefined);
  const start = range && fresh ? Number(range[1]) : 0;
  const body = file.bytes.subarray(start);
  const headers: Record<string, string | number> = {
    'content-length': body.length,
    ...(file.etag === undefined ? {} : { etag: file.etag }),
    ...(start > 0 ? { 'content-range': `bytes ${start}-${file.bytes.length - 1}/${file.bytes.length}` } : {}),
    ...file.headers,
  };
  if (headers['content-length'] === '') delete headers['content-length'];
  response.writeHead(file.status ?? (start > 0 ? 206 : 200), headers);
  const faulty = file.faults === undefined || file.faults-- > 0;
  const limit = faulty ? file.stallAfter : undefined;
  if (limit === undefined || limit >= body.length) {
    response.end(body);
    return;
  }
  response.flushHeaders();
  response.write(body.subarray(0, limit));
}
