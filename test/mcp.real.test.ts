// MCP as its clients see it: the official client over both transports and in both eras of the protocol, against a real server.

import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createUserClient, type UserClient } from '../src/api/client/user-client.ts';
import { parse } from '../src/api/parse.ts';
import { InstanceSpec } from '../src/api/resources/instance.ts';
import { silentLogger } from '../src/base/log.ts';
import { systemFetch } from '../src/base/system.ts';
import { ServerConfig } from '../src/server/config.ts';
import { type RunningServer, startServer } from '../src/server/run.ts';

let directory: string;
let server: RunningServer;
let api: UserClient;
let viewer: string;

beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'berth-mcp-'));
  const config = parse(ServerConfig, { listen: '127.0.0.1:0', dataDirectory: join(directory, 'server'), mcp: 'write' });
  server = await startServer(config, { log: silentLogger });
  api = createUserClient({ fetch: systemFetch, url: server.url, token: server.operatorToken });
  await api.create('image', { metadata: { name: 'tiny' }, spec: { source: 'https://images.example/tiny.qcow2' } });
  viewer = (
    await api.createToken({
      metadata: { name: 'watcher', labels: {} },
      spec: { role: 'viewer', project: 'default', description: '' },
    })
  ).token;
});
afterAll(async () => {
  await server?.close();
  await rm(directory, { recursive: true, force: true });
});

type Era = 'legacy' | 'modern';

function clientOf(era: Era): Client {
  return new Client(
    { name: 'test', version: '1' },
    { versionNegotiation: { mode: era === 'legacy' ? 'legacy' : { pin: '2026-07-28' } } },
  );
}

async function overHttp(era: Era, token: string): Promise<Client> {
  const client = clientOf(era);
  const transport = new StreamableHTTPClientTransport(new URL(`${server.url}/mcp`), {
    requestInit: { headers: { authorization: `Bearer ${token}` } },
  });
  await client.connect(transport);
  return client;
}

async function overStdio(era: Era, token: string, options: readonly string[] = []): Promise<Client> {
  const client = clientOf(era);
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [new URL('../src/main.ts', import.meta.url).pathname, 'mcp', ...options],
    env: { BERTH_URL: server.url, BERTH_TOKEN: token, BERTH_CONFIG: join(directory, 'none.yaml'), HOME: directory },
    stderr: 'ignore',
  });
  await client.connect(transport);
  return client;
}

const opened = { 'streamable HTTP': overHttp, 'standard input and output': overStdio };
const ways = Object.entries(opened).flatMap(([way, open]) =>
  (['legacy', 'modern'] as const).map((era) => ({ way, era, open: (token: string) => open(era, token) })),
);

interface Called {
  readonly isError?: boolean;
  readonly structuredContent?: Record<string, unknown>;
  readonly content: readonly { readonly text?: string }[];
}

async function call(client: Client, name: string, input: Record<string, unknown>): Promise<Called> {
  return (await client.callTool({ name, arguments: input })) as Called;
}

describe.each(ways)('over $way, $era', ({ open }) => {
  it('lists tools with all hints, answers calls, and gives prompts', async () => {
    const client = await open(viewer);
    try {
      const { tools } = await client.listTools();
      expect(tools.map(({ name }) => name)).toEqual(
        expect.arrayContaining(['list', 'show', 'explain', 'plan', 'logs']),
      );
      for (const { annotations } of tools)
        expect(Object.keys(annotations ?? {}).sort()).toEqual([
          'destructiveHint',
          'idempotentHint',
          'openWorldHint',
          'readOnlyHint',
        ]);
      const listed = await call(client, 'list', { kind: 'image' });
      expect(listed.structuredContent).toMatchObject({ count: 1, untrusted: [{ name: 'tiny' }] });
      expect(JSON.parse(listed.content[0]?.text ?? '')).toEqual(listed.structuredContent);
      const prompt = await client.getPrompt({ name: 'why_is_it_pending', arguments: { instance: 'web"\u001b[31m' } });
      expect(JSON.stringify(prompt.messages)).toContain('web\\\\\\"');
      expect(JSON.stringify(prompt.messages)).not.toContain('\\u001b');
    } finally {
      await client.close();
    }
  });
});

describe('what a caller may do', () => {
  it('is what its token permits', async () => {
    const client = await overHttp('modern', viewer);
    try {
      expect(await call(client, 'list', { kind: 'host' })).toMatchObject({ isError: true });
      const refused = await call(client, 'plan', { name: 'web', image: 'tiny' });
      expect(refused.isError).toBe(true);
      expect(JSON.parse(refused.content[0]?.text ?? '')).toMatchObject({ code: 'Forbidden' });
    } finally {
      await client.close();
    }
  });

  it('ends a subscription at once, for nothing of what is served changes', async () => {
    const meta = {
      'io.modelcontextprotocol/protocolVersion': '2026-07-28',
      'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
      'io.modelcontextprotocol/clientCapabilities': {},
    };
    const response = await fetch(`${server.url}/mcp`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${viewer}`,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
        'mcp-protocol-version': '2026-07-28',
        'mcp-method': 'subscriptions/listen',
      },
      body: JSON.stringify({
        ...{ jsonrpc: '2.0', id: 1, method: 'subscriptions/listen' },
        params: { _meta: meta, notifications: { toolsListChanged: true } },
      }),
    });
    expect(await response.text()).toContain('-32603');
  });

  it('needs a token, and no page of another site has one', async () => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'server/discover', params: {} });
    const send = (headers: Record<string, string>) => {
      const sent = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers };
      return fetch(`${server.url}/mcp`, { method: 'POST', body, headers: sent });
    };
    const authorization = `Bearer ${viewer}`;
    const without = await send({});
    expect([without.status, without.headers.get('www-authenticate')]).toEqual([401, 'Bearer']);
    expect((await send({ authorization, origin: 'https://evil.example' })).status).toBe(403);
    // Without a provider there is none to be sent to.
    expect((await fetch(`${server.url}/.well-known/oauth-protected-resource/mcp`)).status).toBe(404);
    expect((await fetch(`${server.url}/mcp`, { headers: { authorization } })).status).toBe(405);
  });

  it('writes what was planned before, once, and the audit log knows by which way', async () => {
    const client = await overHttp('modern', server.operatorToken);
    const request = { name: 'by-model', image: 'tiny', cpus: 1, memoryMiB: 64 };
    try {
      expect(await call(client, 'run', { ...request, planHash: 'guessed' })).toMatchObject({ isError: true });
      const { planHash } = (await call(client, 'plan', request)).structuredContent ?? {};
      expect(await call(client, 'run', { ...request, cpus: 2, planHash })).toMatchObject({ isError: true });
      const created = await call(client, 'run', { ...request, planHash });
      expect(created.structuredContent).toMatchObject({ created: true, untrusted: { name: 'by-model' } });
      expect((await call(client, 'run', { ...request, planHash })).structuredContent).toEqual(
        created.structuredContent,
      );
      expect((await api.list('instance')).items).toHaveLength(1);
      const { items } = await api.auditLog({ object: 'by-model' });
      expect(items).toContainEqual(expect.objectContaining({ face: 'mcp', verb: 'create' }));
      const explained = await call(client, 'explain', { name: 'by-model' });
      expect(explained.structuredContent).toMatchObject({ untrusted: { instance: 'by-model' } });
    } finally {
      await client.close();
    }
  });

  it('changes what is there by the hash of a plan of the same world', async () => {
    const client = await overHttp('modern', server.operatorToken);
    const planned = async (tool: string, input: Record<string, unknown>) =>
      String((await call(client, tool, input)).structuredContent?.['planHash']);
    try {
      const asked = { image: 'tiny', cpus: 1, memoryMiB: 64, userData: 'the secret of the template' };
      const spec = parse(InstanceSpec, asked, 'spec');
      await api.create('instance', { metadata: { name: 'larger' }, spec: { image: 'tiny', cpus: 1, memoryMiB: 64 } });
      await api.create('workload', {
        metadata: { name: 'shop' },
        spec: { replicas: 2, template: { labels: {}, spec } },
      });
      const shown = await call(client, 'show', { kind: 'workload', name: 'shop' });
      expect(shown.structuredContent).toMatchObject({ untrusted: { spec: { template: { spec: { image: 'tiny' } } } } });
      expect(JSON.stringify(shown)).not.toContain('secret of the template');

      const scaling = { name: 'shop', replicas: 4 };
      const scaleHash = await planned('plan_scale', scaling);
      expect(await call(client, 'scale', { ...scaling, replicas: 5, planHash: scaleHash })).toMatchObject({
        isError: true,
      });
      expect((await call(client, 'scale', { ...scaling, planHash: scaleHash })).structuredContent).toMatchObject({
        applied: true,
      });
      expect((await api.get('workload', 'shop')).spec.replicas).toBe(4);

      // In use by the workload: refused by another hash, deleted by the one of its effects.
      const deletion = { kind: 'image', name: 'tiny' };
      const deletionHash = await planned('plan_deletion', deletion);
      expect(await call(client, 'delete', { ...deletion, planHash: 'guessed-hash' })).toMatchObject({ isError: true });
      const resizing = { name: 'larger', memoryMiB: 128 };
      const resize = await call(client, 'plan_resize', resizing);
      expect(resize.structuredContent).toMatchObject({ planHash: expect.any(String), possible: expect.any(Boolean) });
      expect(await call(client, 'resize', { ...resizing, planHash: 'guessed-hash' })).toMatchObject({ isError: true });
      const rebalanced = { planHash: await planned('plan_rebalance', { budget: 3 }) };
      expect(await call(client, 'rebalance', rebalanced)).toMatchObject({ isError: true });
      const empty = await call(client, 'rebalance', { budget: 3, ...rebalanced });
      expect(empty.structuredContent).toMatchObject({ drains: 0 });
      await api.delete('workload', 'shop');
      const other = await call(client, 'delete', { ...deletion, planHash: deletionHash });
      expect(other).toMatchObject({ isError: true });
      const now = { ...deletion, planHash: await planned('plan_deletion', deletion) };
      expect((await call(client, 'delete', now)).structuredContent).toMatchObject({ deleted: true });
    } finally {
      await client.close();
    }
  });

  it('offers no tool that writes unless writes are allowed', async () => {
    for (const [options, offered] of [
      [[], false],
      [['--allow-writes'], true],
    ] as const) {
      const client = await overStdio('modern', server.operatorToken, options);
      const { tools } = await client.listTools();
      await client.close();
      expect(tools.some(({ name }) => name === 'run')).toBe(offered);
    }
  });

  it('bounds what it answers, and its cursors are for one question', async () => {
    const client = await overHttp('modern', server.operatorToken);
    try {
      for (let i = 0; i < 5; i++)
        await api.create('size', { metadata: { name: `s${i}` }, spec: { cpus: 1, memoryMiB: 64 } });
      const first = (await call(client, 'list', { kind: 'size', limit: 3 })).structuredContent ?? {};
      const second = (await call(client, 'list', { kind: 'size', limit: 3, cursor: first['cursor'] }))
        .structuredContent;
      expect([first['count'], second?.['count'], second?.['cursor']]).toEqual([3, 2, undefined]);
      const other = await call(client, 'list', { kind: 'image', limit: 3, cursor: first['cursor'] });
      expect(JSON.parse(other.content[0]?.text ?? '')).toMatchObject({ code: 'InvalidRequest', field: 'cursor' });
    } finally {
      await client.close();
    }
  });
});

describe('garbage', () => {
  it.each([
    ['no JSON-RPC', '{}'],
    ['a batch', '[{"jsonrpc":"2.0","id":1,"method":"tools/list"}]'],
    ['not JSON', '{'],
    ['an unknown method', '{"jsonrpc":"2.0","id":1,"method":"tools/destroy"}'],
    ['a key that is no field', '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"__proto__":{"name":"list"}}}'],
    ['deep nesting', `${'['.repeat(5_000)}${']'.repeat(5_000)}`],
  ])('is refused: %s', async (_what, body) => {
    const headers = {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      authorization: `Bearer ${viewer}`,
    };
    const response = await fetch(`${server.url}/mcp`, { method: 'POST', body, headers });
    expect(response.status).toBeGreaterThanOrEqual(200);
    expect(response.status).toBeLessThan(500);
    expect(await response.text()).toMatch(/error/);
  });
});
