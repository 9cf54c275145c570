// For tests: a repository on this host, made with git, and an HTTP server for it on the loopback: smart (git http-backend) or dumb (plain files).

import { execFileSync, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, realpathSync, rmSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

export function makeFolder(): string {
  return realpathSync(mkdtempSync(join(tmpdir(), 'berth-git-')));
}

/** git in a folder, with nothing of the machine's configuration. Returns what it writes. */
export function git(folder: string, ...words: string[]): string {
  const env = {
    PATH: process.env['PATH'],
    HOME: folder,
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_AUTHOR_NAME: 'a',
    GIT_AUTHOR_EMAIL: 'a@example.com',
    GIT_AUTHOR_DATE: '2026-01-01T00:00:00Z',
    GIT_COMMITTER_NAME: 'a',
    GIT_COMMITTER_EMAIL: 'a@example.com',
    GIT_COMMITTER_DATE: '2026-01-01T00:00:00Z',
  };
  return execFileSync('git', words, { cwd: folder, env, encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] }).trim();
}

export interface GitServer {
  readonly url: string;
  readonly port: number;
  /** Method, path and query of what was asked, and its authorization. */
  readonly asked: readonly { readonly path: string; readonly authorization: string | undefined }[];
  close(): Promise<void>;
}

export type Answer = (request: IncomingMessage, response: ServerResponse) => void;

/** `tls`: PEM of a key and its certificate. */
export async function serve(answer: Answer, tls?: { readonly key: string; readonly cert: string }): Promise<GitServer> {
  const asked: { path: string; authorization: string | undefined }[] = [];
  const listen: Answer = (request, response) => {
    asked.push({ path: request.url ?? '', authorization: request.headers.authorization });
    answer(request, response);
  };
  const server: Server = tls === undefined ? createServer(listen) : createSecureServer(tls, listen);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `${tls === undefined ? 'http' : 'https'}://127.0.0.1:${port}`,
    port,
    asked,
    close() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

/** Files below a folder, as any web server has them. */
export function dumb(root: string): Answer {
  return (request, response) => {
    const path = join(root, new URL(request.url ?? '/', 'http://x').pathname);
    try {
      if (!statSync(path).isFile()) throw new Error('not a file');
      response.end(readFileSync(path));
    } catch {
      response.writeHead(404).end();
    }
  };
}

/** `git http-backend` as a CGI program. `old`: of protocol v0, as behind web servers that do not pass on the header. */
export function smart(root: string, { old = false }: { readonly old?: boolean } = {}): Answer {
  return (request, response) => {
    const { pathname, search } = new URL(request.url ?? '/', 'http://x');
    const { headers } = request;
    const child = spawn('git', ['http-backend'], {
      env: {
        PATH: process.env['PATH'],
        GIT_PROJECT_ROOT: root,
        GIT_HTTP_EXPORT_ALL: '1',
        GIT_CONFIG_COUNT: '1',
        GIT_CONFIG_KEY_0: 'safe.directory',
        GIT_CONFIG_VALUE_0: '*',
        PATH_INFO: decodeURIComponent(pathname),
        QUERY_STRING: search.slice(1),
        REQUEST_METHOD: request.method,
        CONTENT_TYPE: headers['content-type'],
        HTTP_CONTENT_ENCODING: headers['content-encoding'],
        GIT_PROTOCOL: old ? '' : String(headers['git-protocol'] ?? ''),
      },
    });
    request.pipe(child.stdin);
    child.stdin.on('error', () => {});
    const output: Buffer[] = [];
    child.stdout.on('data', (chunk: Buffer) => output.push(chunk));
    child.once('close', () => {
      const all = Buffer.concat(output);
      const end = all.indexOf('\r\n\r\n');
      const lines = all.toString('latin1', 0, end).split('\r\n');
      const fields = lines.map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1).trim()]);
      const status = fields.find(([name]) => name === 'Status')?.[1] ?? '200';
      response.writeHead(Number.parseInt(status, 10), Object.fromEntries(fields.filter(([name]) => name !== 'Status')));
      response.end(all.subarray(end + 4));
    });
  };
}

export interface TarEntry {
  readonly type: string;
  readonly mode: number;
  readonly link: string;
  readonly text: string;
}

/** What GNU's or busybox's tar makes of an archive: by path. */
export function listTar(path: string, tar: readonly string[] = ['tar']): Map<string, TarEntry> {
  const folder = makeFolder();
  try {
    const [program = 'tar', ...words] = tar;
    execFileSync(program, [...words, '-x', '-o', '-f', path, '-C', folder]);
    const found = execFileSync('find', ['.', '-mindepth', '1', '-printf', '%y %m %p\\t%l\\0'], {
      cwd: folder,
      encoding: 'utf8',
    });
    return new Map(
      found
        .split('\0')
        .filter((line) => line !== '')
        .map((line): [string, TarEntry] => {
          const [, type = '', mode = '', name = '', link = ''] = /^(\S+) (\S+) \.\/([^\t]*)\t(.*)$/.exec(line) ?? [];
          const text = type === 'f' ? readFileSync(join(folder, name), 'latin1') : '';
          return [name, { type, mode: Number.parseInt(mode, 8), link, text }];
        }),
    );
  } finally {
    rmSync(folder, { recursive: true });
  }
}
