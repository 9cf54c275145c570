// The cost of open dashboards for the server, compared with the same number of plain watchers. Two real pages record the requests of a dashboard
// and their times; fifty connections without a browser then repeat them, because fifty browsers would use the CPUs that are measured.

import { readFile } from 'node:fs/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import type { BrowserContext, Request } from 'playwright-core';
import type { createClient } from '../src/api/client/client.ts';
import { median } from './row.ts';
import type { ServerProcess } from './server-process.ts';
import { instanceNameOf, projectNameOf } from './store-fleet.ts';

const dashboards = 50;
const lastsMs = 10_000;
/**
 * In turns, and the least of each counts: every half minute the server checks its records, which costs more than all watchers. What all
 * dashboards together ask for once a minute, the room in the fleet, is left out with it.
 */
const rounds = 3;
const changeEveryMs = 100;
const scrapes = 9;
const paths = ['/ui/', '/ui/instances'];

interface Asked {
  readonly atMs: number;
  readonly path: string;
  readonly method: string;
  readonly body: string | null;
}

interface Page {
  readonly watch: string;
  readonly asked: readonly Asked[];
}

interface Parts {
  readonly server: ServerProcess;
  readonly client: ReturnType<typeof createClient>;
  readonly context: BrowserContext;
  readonly projects: number;
}

/** CPU time of the server with fifty dashboards, over that with fifty watchers of instances; the changes are the same. */
export async function serverCostRatio(parts: Parts): Promise<number> {
  const pages: Page[] = [];
  for (const path of paths) pages.push(await recorded(parts, path));
  const plain: number[] = [];
  const shown: number[] = [];
  for (let i = 0; i < rounds; i++) {
    plain.push(await cpuMsWith(parts, [{ watch: '/v1/instances?watch=true', asked: [] }]));
    shown.push(await cpuMsWith(parts, pages));
  }
  return Math.min(...shown) / Math.min(...plain);
}

/** What a page asks for in the same time, once it is open; nothing changes meanwhile. */
async function recorded({ server, context }: Parts, path: string): Promise<Page> {
  const page = await context.newPage();
  const { promise: watching, resolve } = Promise.withResolvers<string>();
  const asked: Asked[] = [];
  let openedMs = 0;
  const note = (request: Request): void => {
    const { pathname, search } = new URL(request.url());
    if (pathname === '/v1/watch') {
      openedMs = performance.now();
      resolve(`${pathname}?kinds=${new URLSearchParams(search).get('kinds') ?? ''}`);
    } else if (pathname.startsWith('/v1/') && openedMs > 0)
      asked.push({
        atMs: performance.now() - openedMs,
        path: pathname + search,
        method: request.method(),
        body: request.postData(),
      });
  };
  page.on('request', note);
  await page.goto(server.url + path, { waitUntil: 'commit' });
  const watch = await watching;
  await sleep(lastsMs);
  await page.close();
  return { watch, asked };
}

/** In which the server works for the connections, and makes the same changes. */
async function cpuMsWith({ server, client, projects }: Parts, pages: readonly Page[]): Promise<number> {
  const over = new AbortController();
  const headers = { authorization: `Bearer ${server.operatorToken}` };
  const open = Array.from({ length: dashboards }, (_, i) => pages[i % pages.length]).filter(
    (page) => page !== undefined,
  );
  const connections = await Promise.all(
    open.map(({ watch }) => fetch(server.url + watch, { headers, signal: over.signal })),
  );
  const reading = connections.map((response) => response.arrayBuffer().catch(() => undefined)); // until it is aborted
  const beforeMs = await cpuMs(server.pid);
  const startedMs = performance.now();
  const asking = open.flatMap(({ asked }) =>
    asked.map(async ({ atMs, path, method, body }) => {
      await sleep(atMs);
      const sent = {
        method,
        headers: { ...headers, ...(body === null ? {} : { 'content-type': 'application/json' }) },
      };
      const response = await fetch(server.url + path, body === null ? sent : { ...sent, body });
      await response.arrayBuffer();
    }),
  );
  for (let i = 0; i * changeEveryMs < lastsMs; i++) {
    await sleep(Math.max(0, startedMs + i * changeEveryMs - performance.now()));
    const made = (): Promise<void> => change(client, { i, projects });
    await made().catch(made); // on a connection that the server has closed meanwhile, because it was idle
  }
  await Promise.all(asking);
  const tookMs = (await cpuMs(server.pid)) - beforeMs;
  over.abort();
  await Promise.all(reading);
  return tookMs;
}

async function change(
  client: Parts['client'],
  { i, projects }: { readonly i: number; readonly projects: number },
): Promise<void> {
  const [name, project] = [instanceNameOf(i), projectNameOf(i % projects)];
  const { spec } = await client.get('instance', name, { project });
  await client.replace('instance', name, { metadata: { project, labels: { at: String(performance.now()) } }, spec });
}

/** User and system time (proc_pid_stat(5)); a tick is 10 ms on Linux. */
async function cpuMs(pid: number): Promise<number> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8');
  const fields = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return 10 * (Number(fields[11]) + Number(fields[12]));
}

/** Median of some readings of `/metrics`. */
export async function metricsScrapeMs({ url, operatorToken }: ServerProcess): Promise<number> {
  const headers = { authorization: `Bearer ${operatorToken}` };
  const tookMs: number[] = [];
  for (let i = 0; i < scrapes; i++) {
    const startedMs = performance.now();
    const response = await fetch(`${url}/metrics`, { headers });
    const text = await response.text();
    if (!text.includes('berth_')) throw new Error(`/metrics answers with the status ${response.status}`);
    tookMs.push(performance.now() - startedMs);
  }
  return median(tookMs);
}
