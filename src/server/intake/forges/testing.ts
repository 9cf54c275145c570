// A small forge for tests, after the API documentation of GitHub and Forgejo: it knows branches, pull requests and commit
// statuses, asks for a token, and answers what a test tells it to.

import { createHmac } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { systemFetch } from '../../../base/system.ts';
import type { Forge } from '../../../core/operations/jobs/webhook-event.ts';
import type { ConfiguredHook } from './forge-config.ts';

export const testToken = 'forge-token';
export const testSecret = 'hook-secret';

export interface PostedStatus {
  readonly repository: string;
  readonly sha: string;
  readonly state: string;
  readonly description: string;
  readonly context: string;
  readonly target_url?: string;
}

/** What the forge answers instead of what it should. */
interface Fault {
  readonly status: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  /** The connection breaks after the forge has done what was asked. */
  readonly lost?: true;
}

export class TestForge {
  readonly forge: Forge;
  readonly statuses: PostedStatus[] = [];
  /** Method and path of every request, in order. */
  readonly requests: string[] = [];
  /** By `owner/name`, then by branch, or by number of a pull request. */
  readonly heads = new Map<string, string>();
  readonly #faults: Fault[] = [];
  readonly #server = createServer((request, response) => void this.#answer(request, response));
  #waiting: (() => void)[] = [];

  constructor(forge: Forge) {
    this.forge = forge;
  }

  async start(): Promise<this> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return this;
  }

  async stop(): Promise<void> {
    this.#server.closeAllConnections();
    this.#server.close();
    await once(this.#server, 'close');
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  get apiUrl(): string {
    return `${this.url}${this.forge === 'github' ? '/api/v3' : '/api/v1'}`;
  }

  /** Before the answers that are due: these, one for each request. */
  failNext(...faults: readonly Fault[]): void {
    this.#faults.push(...faults);
  }

  /** Resolves when the forge has had as many requests. */
  async requested(count: number): Promise<void> {
    while (this.requests.length < count) await new Promise<void>((resolve) => this.#waiting.push(resolve));
  }

  hook(changes: Partial<ConfiguredHook> = {}): ConfiguredHook {
    return {
      name: 'main',
      forge: this.forge,
      project: 'default',
      rules: [{ repository: 'owner/*', branches: ['**'], events: ['push', 'pull_request'] }],
      apiUrl: this.apiUrl,
      cloneBaseUrl: this.url,
      secret: Buffer.from(testSecret),
      token: testToken,
      ...changes,
    };
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? '';
    let text = '';
    for await (const piece of request) text += String(piece);
    const fault = this.#faults.shift();
    const { status, json } =
      fault === undefined || fault.lost ? this.#handle(request, path, text) : { status: fault.status, json: undefined };
    this.requests.push(`${request.method} ${path}`);
    for (const resolve of this.#waiting.splice(0)) resolve();
    if (fault?.lost) return void request.socket.destroy();
    response.writeHead(status, { 'content-type': 'application/json', ...fault?.headers });
    response.end(fault?.body ?? JSON.stringify(json ?? { message: 'told to' }));
  }

  #handle(request: IncomingMessage, path: string, text: string): { status: number; json: unknown } {
    const scheme = this.forge === 'github' ? 'Bearer' : 'token';
    if (request.headers['user-agent'] === undefined) return { status: 403, json: { message: 'no user agent' } };
    if (request.headers.authorization !== `${scheme} ${testToken}`)
      return { status: 401, json: { message: 'Bad credentials' } };
    const below = decodeURIComponent(path.slice(new URL(this.apiUrl).pathname.length));
    const status = /^\/repos\/([^/]+\/[^/]+)\/statuses\/([0-9a-f]{40})$/.exec(below);
    if (request.method === 'POST' && status) return this.#post(status, text);
    const head = /^\/repos\/([^/]+\/[^/]+)\/(branches|pulls)\/(.+)$/.exec(below);
    const sha = this.heads.get(`${head?.[1]} ${head?.[3]}`);
    if (request.method !== 'GET' || !head || sha === undefined) return { status: 404, json: { message: 'Not Found' } };
    if (head[2] === 'pulls') return { status: 200, json: { head: { sha } } };
    return { status: 200, json: { name: head[3], commit: this.forge === 'github' ? { sha } : { id: sha } } };
  }

  #post([, repository = '', sha = '']: readonly string[], text: string): { status: number; json: unknown } {
    const body = JSON.parse(text) as Omit<PostedStatus, 'repository' | 'sha'>;
    const states = ['error', 'failure', 'pending', 'success', ...(this.forge === 'forgejo' ? ['warning'] : [])];
    if (!states.includes(body.state) || body.description.length > 140)
      return { status: 422, json: { message: 'Validation Failed' } };
    this.statuses.push({ repository, sha, ...body });
    return { status: 201, json: { id: this.statuses.length, state: body.state } };
  }
}

export interface TestDelivery {
  readonly forge: Forge;
  readonly event: string;
  readonly id: string;
  readonly body: string;
}

/** The headers of a delivery. Forgejo sends those of GitHub, Gitea and Gogs as well. */
export function headersOf(
  { forge, event, id, body }: TestDelivery,
  secret = testSecret,
): Readonly<Record<string, string>> {
  const hex = createHmac('sha256', secret).update(body).digest('hex');
  const github = { 'x-github-event': event, 'x-github-delivery': id, 'x-hub-signature-256': `sha256=${hex}` };
  return {
    'content-type': 'application/json',
    ...github,
    ...(forge === 'github'
      ? {}
      : {
          'x-forgejo-event': event,
          'x-forgejo-delivery': id,
          'x-forgejo-signature': hex,
          'x-gitea-event': event,
          'x-gitea-delivery': id,
          'x-gitea-signature': hex,
        }),
  };
}

export async function send(
  url: string,
  {
    body,
    headers,
  }: { readonly body: string | Uint8Array | ReadableStream; readonly headers: Readonly<Record<string, string>> },
): Promise<{ readonly status: number; readonly json: unknown }> {
  const response = await systemFetch(url, {
    method: 'POST',
    body,
    headers,
    ...(body instanceof ReadableStream ? { duplex: 'half' } : {}),
  });
  const text = await response.text();
  return { status: response.status, json: text === '' ? undefined : JSON.parse(text) };
}

/** 40 times a digit. */
export function testSha(digit: string | number): string {
  return String(digit).repeat(40);
}

export function pushBody(forge: TestForge, changes: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({
    ref: 'refs/heads/main',
    before: testSha(0),
    after: testSha(1),
    created: true,
    deleted: false,
    forced: false,
    commits: [{ id: testSha(1), added: ['a.txt'], modified: [], removed: [] }],
    ...(forge.forge === 'forgejo' ? { total_commits: 1 } : {}),
    repository: { id: 7, full_name: 'owner/web', clone_url: `${forge.url}/owner/web.git`, default_branch: 'main' },
    ...changes,
  });
}
