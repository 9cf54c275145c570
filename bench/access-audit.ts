// Row `audit_overhead_pct`: creates per second with the audit log on, against off. Both servers run, and take turns.

import { join } from 'node:path';
import { agentClientOf } from './agent-client.ts';
import { connectRaw, encodeRequest, type Target } from './raw-http.ts';
import { type Emit, median } from './row.ts';
import { startServerProcess } from './server-process.ts';

const hosts = 100;
const clients = 16;
const roundMs = 3_000;
const rounds = 5;

export async function auditOverhead(directory: string, emit: Emit): Promise<void> {
  const servers = await Promise.all(['true', 'false'].map((audit) => start(join(directory, `audit-${audit}`), audit)));
  try {
    const [on, off] = servers.map(({ target }) => target);
    if (!on || !off) return;
    const ratios: number[] = [];
    for (const target of [on, off]) await createsPerSecond(target, 'warm');
    for (let round = 0; round < rounds; round++) {
      const logged = await createsPerSecond(on, `r${round}`);
      const without = await createsPerSecond(off, `r${round}`);
      ratios.push(logged / without);
      process.stderr.write(`  ${Math.round(logged)} creates/s with the audit log, ${Math.round(without)} without\n`);
    }
    const value = 100 * (1 - median(ratios));
    emit({
      suite: 'access',
      name: 'audit_overhead_pct',
      value,
      unit: '%',
      better: 'lower',
      goal: 3,
      limit: 10,
      ratio: value / 10,
    });
  } finally {
    for (const { close } of servers) await close();
  }
}

async function start(directory: string, audit: string): Promise<{ target: Target; close(): Promise<void> }> {
  const env = { BERTH_SERVER_OFFLINE_AFTER_MS: '86400000', BERTH_SERVER_AUDIT: audit };
  const server = await startServerProcess(directory, { env });
  const target = { url: server.url, token: server.operatorToken };
  for (let i = 0; i < hosts; i++) await agentClientOf(server, `bench-${i}`);
  const connection = await connectRaw(target.url);
  const image = { metadata: { name: 'bench' }, spec: { source: 'file:///nowhere' } };
  await new Promise<void>((resolve) =>
    connection.send(encodeRequest(target, 'POST', '/v1/images', image), () => resolve()),
  );
  connection.close();
  return { target, close: () => server.close() };
}

/** Every client sends its next create when the one before is answered. */
async function createsPerSecond(target: Target, prefix: string): Promise<number> {
  const open = await Promise.all(Array.from({ length: clients }, () => connectRaw(target.url)));
  const startedAt = performance.now();
  let sent = 0;
  await Promise.all(
    open.map(
      (connection) =>
        new Promise<void>((resolve, reject) => {
          const next = (): void => {
            if (performance.now() - startedAt > roundMs) return resolve();
            const body = {
              metadata: { name: `${prefix}-${sent++}` },
              spec: { image: 'bench', cpus: 1, memoryMiB: 64 },
            };
            connection.send(encodeRequest(target, 'POST', '/v1/instances', body), ({ status }) =>
              status === 201 ? next() : reject(new Error(`the server answered ${status}`)),
            );
          };
          next();
        }),
    ),
  );
  for (const connection of open) connection.close();
  return (sent * 1000) / (performance.now() - startedAt);
}
