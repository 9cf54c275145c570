// Row `audit_overhead_pct`: creates per second with the audit log on, against off. Both servers run, and take turns.

import { join } from 'node:path';
import { createsPerSecond, hosts } from './access-creates.ts';
import { agentClientOf } from './agent-client.ts';
import { connectRaw, encodeRequest, type Target } from './raw-http.ts';
import { type Emit, median } from './row.ts';
import { startServerProcess } from './server-process.ts';

const rounds = 15;

export async function auditOverhead(directory: string, emit: Emit): Promise<void> {
  const servers = await Promise.all(['true', 'false'].map((audit) => start(join(directory, `audit-${audit}`), audit)));
  try {
    const [on, off] = servers.map(({ target }) => target);
    if (!on || !off) return;
    const ratios: number[] = [];
    for (const target of [on, off]) await createsPerSecond(target, { prefix: 'warm' });
    for (let round = 0; round < rounds; round++) {
      const logged = await createsPerSecond(on, { prefix: `r${round}` });
      const without = await createsPerSecond(off, { prefix: `r${round}` });
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
