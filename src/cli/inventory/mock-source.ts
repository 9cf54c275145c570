// A source of nodes to try inventories with: `GET /nodes`, with an ETag, on loopback. It reads no request beyond its first lines.

import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { fingerprint } from '../../base/hash.ts';

/** A node as sources of inventories describe it. CPUs, MiB and GiB. */
interface MockNode {
  readonly name: string;
  readonly cpu: number;
  readonly memory: number;
  readonly storage: number;
  readonly usage_cpu: number;
  readonly usage_mem: number;
  readonly pool: string;
  readonly dedicated: boolean;
  readonly model: string;
  readonly max_vms: number;
  readonly current_vms: number;
  readonly ip: string;
}

const sizes = [
  { cpu: 16, memory: 65_536, storage: 960, model: 'small' },
  { cpu: 32, memory: 131_072, storage: 1_920, model: 'medium' },
  { cpu: 64, memory: 262_144, storage: 3_840, model: 'large' },
] as const;

/** After this number of changes the loads repeat. */
const wave = 8;

/**
 * The same nodes for the same count and turn. One of ten is dedicated. At turn 0 one of four is half used; with each turn the load of one
 * of four changes, between nothing and all but a quarter.
 */
export function mockNodes(count: number, pool = 'metal', turn = 0): MockNode[] {
  return Array.from({ length: count }, (_, i) => {
    const { cpu, memory, storage, model } = sizes[i % sizes.length] ?? sizes[0];
    const used = loadOf(i, turn);
    return {
      ...{ name: `metal-${i}`, cpu, memory, storage, pool, model },
      usage_cpu: cpu * used,
      usage_mem: memory * used,
      dedicated: i % 10 === 9,
      max_vms: 16,
      current_vms: Math.ceil(used * 8),
      ip: `10.${20 + (i >> 16)}.${(i >> 8) & 255}.${i & 255}`,
    };
  });
}

/** The share that is used: 0, 1/4, 1/2 or 3/4. */
function loadOf(index: number, turn: number): number {
  const begin = index % 4 === 3 ? 2 : 0;
  const changes = Math.floor((turn + (index % 4)) / 4);
  const at = (begin + changes * (1 + (index % 3))) % wave;
  return Math.min(at, wave - at, 3) / 4;
}

interface MockOptions {
  readonly hosts: number;
  readonly port: number;
  readonly pool?: string;
  /** The number of the change of loads that is served. Default: they never change. */
  readonly turn?: () => number;
}

export class MockSource {
  readonly url: string;
  readonly #server: Server;

  private constructor(server: Server, url: string) {
    this.#server = server;
    this.url = url;
  }

  static async open({ hosts, port, pool, turn = () => 0 }: MockOptions) {
    const listAt = (number: number) => {
      const body = JSON.stringify(mockNodes(hosts, pool, number));
      return { number, body, etag: `"${fingerprint(body)}"` };
    };
    let list = listAt(turn());
    const server = createServer((request, response) => {
      request.resume();
      if (request.method !== 'GET' || request.url !== '/nodes') return void response.writeHead(404).end();
      if (list.number !== turn()) list = listAt(turn());
      const { body, etag } = list;
      if (request.headers['if-none-match'] === etag) return void response.writeHead(304, { etag }).end();
      response.writeHead(200, { 'content-type': 'application/json', etag }).end(body);
    });
    await once(server.listen(port, '127.0.0.1'), 'listening');
    const address = server.address();
    const bound = typeof address === 'object' && address !== null ? address.port : port;
    return new MockSource(server, `http://127.0.0.1:${bound}/nodes`);
  }

  async close(): Promise<void> {
    this.#server.close();
    this.#server.closeAllConnections();
    if (this.#server.listening) await once(this.#server, 'close');
  }
}
