// Rows `audit_overhead_pct` and `audit_overhead_cpu_pct`: creates with the audit log on, against off. Both servers run, and take turns.

import { join } from 'node:path';
import { hosts, overheadOf, overheadRows, type Side } from './access-creates.ts';
import { agentClientOf } from './agent-client.ts';
import { connectRaw, encodeRequest } from './raw-http.ts';
import type { Emit } from './row.ts';
import { startServerProcess } from './server-process.ts';

const rounds = 15;

export async function auditOverhead(directory: string, emit: Emit): Promise<void> {
  const servers = await Promise.all(['true', 'false'].map((audit) => start(join(directory, `audit-${audit}`), audit)));
  try {
    const [on, off] = servers.map(({ side }) => side);
    if (on && off) for (const row of overheadRows('audit_overhead', await overheadOf(on, off, rounds))) emit(row);
  } finally {
    for (const { close } of servers) await close();
  }
}

async function start(directory: string, audit: string): Promise<{ side: Side; close(): Promise<void> }> {
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
  const name = audit === 'true' ? 'audited' : 'unaudited';
  return { side: { target, pid: server.pid, name }, close: () => server.close() };
}
