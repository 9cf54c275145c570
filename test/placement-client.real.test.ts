// The client of OpenStack that Debian has, against the Placement API.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestServer, testRegistration } from '../src/server/testing.ts';

const run = promisify(execFile);
const example = fileURLToPath(new URL('../examples/placement/claim.sh', import.meta.url));
const consumers = ['88888888-8888-4888-8888-888888888881', '88888888-8888-4888-8888-888888888882'] as const;

let server: Awaited<ReturnType<typeof startTestServer>>;

beforeAll(async () => {
  server = await startTestServer({ policy: { offlineAfterMs: 3_600_000 } }); // there is no agent that sends heartbeats
  await server.agentClient('h1').register(testRegistration({ capacity: { VCPU: 4, MEMORY_MB: 8192, DISK_GB: 100 } }));
});

afterAll(() => server.close());

async function openstack(...words: string[]): Promise<string> {
  const at = ['--os-auth-type', 'admin_token', '--os-endpoint', `${server.url}/placement`, '--os-token', 'operator'];
  const { stdout } = await run('openstack', [...at, '--os-placement-api-version', '1.28', ...words]);
  return stdout.trim();
}

async function claim(
  consumer: string,
  ...amounts: string[]
): Promise<{ code: number; stdout: string; stderr: string }> {
  const env = { ...process.env, PLACEMENT_URL: `${server.url}/placement`, PLACEMENT_TOKEN: 'operator' };
  return run('sh', [example, consumer, ...amounts], { env }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    (error: { code: number; stdout: string; stderr: string }) => error,
  );
}

it('creates a provider, claims from it and from a host, and sees what an instance of Berth holds', async () => {
  const provider = await openstack('resource', 'provider', 'create', 'edge', '-f', 'value', '-c', 'uuid');
  await openstack('resource', 'provider', 'inventory', 'set', provider, '--resource', 'DISK_GB=10');
  expect(await openstack('resource', 'provider', 'list', '-f', 'value', '-c', 'name')).toContain('h1');

  expect(await claim(consumers[0], 'VCPU=3', 'MEMORY_MB=1024')).toMatchObject({ code: 0 });
  expect(await server.client.json('/v1/capacity?cpus=2&memoryMiB=512')).toMatchObject({ sizes: [{ more: 0 }] });
  const refused = await claim(consumers[1], 'VCPU=2', 'MEMORY_MB=1024');
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('NO ALLOCATIONS LEFT') });

  await openstack('resource', 'provider', 'allocation', 'delete', consumers[0]);
  expect(await server.client.json('/v1/capacity?cpus=2&memoryMiB=512')).toMatchObject({ sizes: [{ more: 2 }] });
}, 120_000);
