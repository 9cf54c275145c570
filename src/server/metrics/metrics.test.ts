// The metrics of a control plane: what is counted of work, and that each is explained in docs/observability.md.

import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startTestServer, testRegistration } from '../testing.ts';

let server: Awaited<ReturnType<typeof startTestServer>>;
beforeEach(async () => {
  server = await startTestServer({ sourceMetricNames: true });
});
afterEach(() => server.close());

async function scrape(): Promise<string> {
  const answer = await fetch(`${server.url}/metrics`, { headers: { authorization: 'Bearer operator' } });
  expect(answer.status).toBe(200);
  return answer.text();
}

/** Of one time series: `berth_hosts_by_state{state="Ready"}`. */
async function value(series: string): Promise<number | undefined> {
  const line = (await scrape()).split('\n').find((each) => each.startsWith(`${series} `));
  return line === undefined ? undefined : Number(line.slice(series.length + 1));
}

describe('metrics of guests', () => {
  it('sum up what agents measured by host, are shown for one instance, and name no guest unless that is configured', async () => {
    const named = await startTestServer({ guestMetrics: true });
    for (const each of [server, named]) {
      const agent = each.agentClient('h1');
      const { epoch, takesUsage } = await agent.register(testRegistration());
      expect(takesUsage).toBe(true);
      await each.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
      await each.client.create('instance', { metadata: { name: 'a' }, spec: { image: 'tiny', cpus: 1 } });
      const { metadata, status } = await each.client.get('instance', 'a');
      expect(status.host).toBe('h1');
      for (const seconds of [10, 20]) {
        const counters = { cpuMs: seconds * 500, memoryBytes: 4_096, networkSentBytes: seconds };
        const guests = [{ instanceId: metadata.id, incarnation: status.incarnation, ...counters }];
        await agent.heartbeat({ epoch, usage: { sampledMs: seconds * 1_000, guests } });
      }
      const seen = { project: 'default', instance: 'a', host: 'h1', cpus: 0.5, cpuMs: 10_000, networkSentBytes: 20 };
      expect(await each.client.instanceUsage('a')).toMatchObject(seen);
      expect(await each.client.allInstanceUsage()).toMatchObject({ items: [seen] });
    }
    expect(await value('berth_host_guests_cpu_seconds_total{host="h1",pool=""}')).toBe(5);
    expect(await value('berth_host_guests_memory_bytes{host="h1",pool=""}')).toBe(4_096);
    expect(await value('berth_guest_cpu_seconds_total{project="default",instance="a",host="h1"}')).toBeUndefined();
    const answer = await fetch(`${named.url}/metrics`, { headers: { authorization: 'Bearer operator' } });
    expect(await answer.text()).toContain(
      'berth_guest_cpu_seconds_total{project="default",instance="a",host="h1"} 10\n',
    );
    await named.close();
  });

  it('say of an instance that it is not measured', async () => {
    await server.client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
    await server.client.create('instance', { metadata: { name: 'a' }, spec: { image: 'tiny', cpus: 1 } });
    await expect(server.client.instanceUsage('a')).rejects.toThrow(/^instance "a" is not measured now: /);
  });
});

describe('the metrics', () => {
  beforeEach(async () => {
    const agent = server.agentClient('h1');
    await agent.register(testRegistration());
    const { client } = server;
    await client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
    await client.create('instance', {
      metadata: { name: 'a', project: 'web' },
      spec: { image: 'tiny', cpus: 1, memoryMiB: 256 },
    });
    await client.create('instance', { metadata: { name: 'b', project: 'web' }, spec: { image: 'tiny', cpus: 64 } });
  });

  it.each([
    ['berth_hosts_by_state{state="Down"}', 0],
    ['berth_instances_by_phase{phase="Scheduled"}', 1],
    ['berth_instances_by_phase{phase="Pending"}', 1],
    ['berth_capacity{pool="default",class="VCPU"}', 4],
    ['berth_claimed{pool="default",class="VCPU"}', 1],
    ['berth_claimed{pool="default",class="MEMORY_MB"}', 256],
    ['berth_queue_instances{project="web"}', 1],
    ['berth_placements_total', 1],
    ['berth_scheduling_seconds_count', 1],
    ['berth_http_request_seconds_count{method="POST",route="/v1/instances",status="201"}', 2],
    ['orchard_vms{status="pending"}', 2],
    ['orchard_workers{worker_name="h1",status="online"}', 1],
    ['org_cirruslabs_orchard_controller_scheduling_time_count', 1],
  ])('%s is %d', async (series, expected) => {
    await expect.poll(() => value(series)).toBe(expected);
  });

  it('count each boot once, by step and by image', async () => {
    const agent = server.agentClient('h1');
    const { metadata, status } = await server.client.get('instance', 'a', { project: 'web' });
    const phases = [
      { name: 'pull', startedAtMs: 1_000, durationMs: 2_000 },
      { name: 'brew', startedAtMs: 3_000, durationMs: 1_000 },
      { name: 'boot', startedAtMs: 4_000, durationMs: 3_000 },
    ];
    const tell = (sequence: number, ready: boolean) => {
      const guest = { state: 'running' as const, ready, ports: [], phases };
      const report = {
        instanceId: metadata.id,
        incarnation: status.incarnation,
        sequence,
        observedGeneration: 1,
        guest,
      };
      return agent.report({ epoch: 1, reports: [report] });
    };
    for (const [sequence, ready] of [true, false, true].entries()) await tell(sequence + 1, ready);
    await expect.poll(() => value('berth_boot_seconds_sum')).toBe(6);
    expect(await value('berth_boot_seconds_count')).toBe(1);
    expect(await value('berth_boot_step_seconds_sum{step="pull"}')).toBe(2);
    expect(await value('berth_boot_step_seconds_sum{step="other"}')).toBe(1);
    expect(await value('berth_image_boot_seconds_sum{image="tiny"}')).toBe(6);
  });

  it('count refusals, reconciles and commits', async () => {
    await server.client.get('instance', 'none').catch(() => undefined);
    expect(await value('berth_http_request_seconds_count{method="GET",route="/v1/instances/:name",status="404"}')).toBe(
      1,
    );
    expect(await scrape()).toMatch(/berth_reconciles_total\{controller="placement",result="(plan|nothing)"\} [1-9]/);
    expect(await value('berth_store_commit_seconds_count{outcome="written"}')).toBeGreaterThan(2);
    expect(await scrape()).toMatch(/berth_queue_reasons\{reason="\w+"\} 1/);
  });

  it('are all explained in the documentation, and it explains no other', async () => {
    const page = readFileSync(new URL('../../../docs/observability.md', import.meta.url), 'utf8');
    const explained = new Set([...page.matchAll(/^\| `([a-z_]+)/gm)].map(([, name]) => name));
    const told = new Set([...(await scrape()).matchAll(/^# TYPE ([a-z_]+)/gm)].map(([, name]) => name));
    const outside = /^berth_(event_bus|webhook|inventory|verify|audit|warm_pool|connections|unread)/; // on pages of their own
    expect([...told].filter((name) => !explained.has(name) && !outside.test(name ?? ''))).toEqual([]);
    expect([...explained].filter((name) => !told.has(name))).toEqual([]);
  });
});
