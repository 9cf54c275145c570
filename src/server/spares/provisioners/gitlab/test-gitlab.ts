// A small server that answers as the documentation of GitLab's API says: pipelines that are triggered, listed, with variables. Tests say
// what goes wrong.

import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

interface StoredPipeline {
  readonly id: number;
  status: string;
  readonly variables: readonly { readonly key: string; readonly value: string }[];
}

/** Instead of the answer: a status with a body, or `drop` to end the connection after the request was carried out. */
export type Fault = { readonly status: number; readonly body?: unknown } | 'drop';

export const triggerToken = 'glptt-0123456789abcdef';
export const apiToken = 'glpat-fedcba9876543210';

export class TestGitlab {
  readonly pipelines: StoredPipeline[] = [];
  readonly requests: string[] = [];
  /** The next request whose method and path begin with this text gets the fault. */
  readonly faults = new Map<string, Fault>();
  pageSizeMax = 100;
  readonly #server: Server;

  constructor() {
    this.#server = createServer((request, response) => void this.#serve(request, response));
  }

  async listen(): Promise<string> {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await once(this.#server.close(), 'close');
  }

  add(variables: Readonly<Record<string, string>>, status = 'created'): StoredPipeline {
    const listed = Object.entries(variables).map(([key, value]) => ({ key, value }));
    const pipeline = { id: 100 + this.pipelines.length, status, variables: listed };
    this.pipelines.push(pipeline);
    return pipeline;
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { method = '', url: target = '', headers } = request;
    let body = '';
    for await (const chunk of request) body += String(chunk);
    const url = new URL(target, 'http://gitlab.test');
    const path = url.pathname.replace('/api/v4/projects/group%2Fspares', '');
    this.requests.push(`${method} ${path}${url.search}`);
    const key = [...this.faults.keys()].find((start) => `${method} ${path}`.startsWith(start));
    const fault = key === undefined ? undefined : this.faults.get(key);
    if (key !== undefined) this.faults.delete(key);
    if (fault !== undefined && fault !== 'drop') return answer(response, fault.status, fault.body ?? {});
    if (method === 'POST' && path === '/trigger/pipeline') {
      const form = new URLSearchParams(body);
      if (form.get('token') !== triggerToken) return answer(response, 404, { message: '404 Not Found' });
      if (form.get('ref') !== 'main') return answer(response, 400, { message: { base: ['Reference not found'] } });
      const found = [...form].flatMap(([name, value]) => {
        const [, variable] = /^variables\[(.+)\]$/.exec(name) ?? [];
        return variable === undefined ? [] : [[variable, value]];
      });
      const pipeline = this.add(Object.fromEntries(found) as Record<string, string>);
      if (fault === 'drop') return void response.socket?.destroy();
      return answer(response, 201, shown(pipeline));
    }
    if (headers['private-token'] !== apiToken) return answer(response, 401, { message: '401 Unauthorized' });
    const [, id, variables] = /^\/pipelines\/(\d+)(\/variables)?$/.exec(path) ?? [];
    if (path === '/pipelines') return this.#list(url, response);
    const pipeline = this.pipelines.find((each) => each.id === Number(id));
    if (pipeline === undefined) return answer(response, 404, { message: '404 Not found' });
    return answer(response, 200, variables === undefined ? shown(pipeline) : pipeline.variables);
  }

  #list({ searchParams }: URL, response: ServerResponse): void {
    const size = Math.min(Number(searchParams.get('per_page') ?? 20), this.pageSizeMax);
    const page = Number(searchParams.get('page') ?? 1);
    const newest = this.pipelines.toReversed();
    const rest = newest.slice(page * size);
    response.setHeader('x-next-page', rest.length > 0 ? String(page + 1) : '');
    answer(response, 200, newest.slice((page - 1) * size, page * size).map(shown));
  }
}

function shown({ id, status }: StoredPipeline): object {
  return { id, status, ref: 'main', source: 'trigger', web_url: `https://gitlab.test/group/spares/-/pipelines/${id}` };
}

function answer(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(typeof body === 'string' ? body : JSON.stringify(body));
}
