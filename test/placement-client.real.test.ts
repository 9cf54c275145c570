// The client of OpenStack that Debian has, against the Placement API.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { startTestServer, testRegistration } from '../src/server/testing.ts';

const run = promisify(execFile);
const example = fileURLToPath(new URL('../examples/placement/claim.sh', import.meta.url));
const edge = '99999999-9999-4999-8999-999999999999';
const consumers = ['88888888-8888-4888-8888-888888888881', '88888888-8888-4888-8888-888888888882'] as const;

let server: Awaited<ReturnType<typeof startTestServer>>;

beforeAll(async () => {
  server = await startTestServer({ policy: { offlineAfterMs: 3_600_000 } }); // there is no agent that sends heartbeats
  await server.agentClient('h1').register(testRegistration({ capacity: { VCPU: 4, MEMORY_MB: 8192, DISK_GB: 100 } }));
});

afterAll(() => server.close());

/**
 * What the client prints for these commands, one process for all: each start takes a second. Its settings are in the environment, as
 * docs/placement-api.md shows.
 */
async function openstack(...commands: string[]): Promise<string[]> {
  const settings = { OS_AUTH_TYPE: 'admin_token', OS_TOKEN: 'operator', OS_ENDPOINT: `${server.url}/placement` };
  const running = run('openstack', { env: { ...process.env, ...settings, OS_PLACEMENT_API_VERSION: '1.39' } });
  running.child.stdin?.end(commands.map((command) => `${command}\n`).join(''));
  const { stdout } = await running;
  return stdout.trim().split('\n');
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
  const listed = await openstack(
    `resource provider create edge --uuid ${edge} -f value -c name`,
    `resource provider inventory set ${edge} --resource DISK_GB=10 -f value -c total`,
    'resource provider list --name h1 -f value -c uuid',
  );
  const h1 = listed.at(-1);
  expect(listed).toEqual(['edge', '10', expect.stringMatching(/^[0-9a-f-]{36}$/)]);

  expect(await claim(consumers[0], 'VCPU=3', 'MEMORY_MB=1024')).toMatchObject({ code: 0, stdout: `${h1}\n` });
  expect(await server.client.json('/v1/capacity?cpus=2&memoryMiB=512')).toMatchObject({ sizes: [{ more: 0 }] });
  const refused = await claim(consumers[1], 'VCPU=2', 'MEMORY_MB=1024');
  expect(refused).toMatchObject({ code: 1, stderr: expect.stringContaining('NO ALLOCATIONS LEFT') });

  await openstack(
    `resource provider allocation delete ${consumers[0]}`,
    `resource provider allocation set ${consumers[1]} --allocation rp=${edge},DISK_GB=4 --project-id p --user-id u --consumer-type BUILD`,
  );
  await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  const spec = { image: 'tiny', cpus: 2, memoryMiB: 512 };
  await server.client.create('instance', { metadata: { name: 'web' }, spec });
  const [instances, ...shown] = await openstack(
    'resource usage show default -f value',
    `resource provider usage show ${h1} -f value`,
    `resource provider usage show ${edge} -f value`,
    'resource class create CUSTOM_LICENSE',
    `resource provider inventory set --amend ${h1} --resource CUSTOM_LICENSE=5 -f value -c resource_class`,
    'allocation candidate list --resource CUSTOM_LICENSE=2 --resource VCPU=2 -f value -c allocation',
  );
  expect(instances).toMatch(/^INSTANCE .*'VCPU': 2/);
  expect(shown).toEqual([
    ...['VCPU 2', 'MEMORY_MB 512', 'DISK_GB 0', 'DISK_GB 4'],
    ...['VCPU', 'MEMORY_MB', 'DISK_GB', 'CUSTOM_LICENSE'],
    expect.stringMatching(/^(VCPU=2,CUSTOM_LICENSE=2|CUSTOM_LICENSE=2,VCPU=2)$/),
  ]);
}, 240_000);
