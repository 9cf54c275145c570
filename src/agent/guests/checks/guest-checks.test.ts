import { afterEach, describe, expect, it } from 'vitest';
import type { GuestStatus } from '../../../api/agent-protocol.ts';
import { instanceId, makeHost } from '../../testing.ts';

// Guests of this world boot in a second, and listen from then on.
describe('the checks of an agent', () => {
  let host: ReturnType<typeof makeHost>;
  const begin = (): ReturnType<typeof makeHost> => {
    host = makeHost();
    return host;
  };
  afterEach(() => host.stopAll());
  const last = (): GuestStatus => host.plane.last() as GuestStatus;

  it('hold readiness back until the port answers, whatever the guest itself says', async () => {
    const { plane, startAgent, pass } = begin();
    await startAgent();
    plane.put({ checks: { readiness: { tcp: { port: 80 }, periodMs: 10_000 } } });
    await pass(4000);
    expect(last()).toMatchObject({
      ...{ state: 'running', ready: false },
      failing: { name: 'readiness', message: 'the readiness check has not passed yet' },
    });
    await pass(10_000);
    expect(last()).toMatchObject({ state: 'running', ready: true });
    expect(last()).not.toHaveProperty('failing');
  });

  it('survive a restart of the agent without a moment of not being ready', async () => {
    const { plane, startAgent, pass } = begin();
    const agent = await startAgent();
    plane.put({ checks: { startup: { tcp: { port: 80 } }, readiness: { tcp: { port: 80 } } } });
    await pass(30_000);
    expect(last()).toMatchObject({ ready: true });
    const { length } = plane.reports;
    await agent.stop();
    await startAgent();
    await pass(60_000);
    expect(plane.reports.slice(length).map(({ guest }) => guest)).not.toContainEqual(
      expect.objectContaining({ ready: false }),
    );
  });

  it('end a guest whose liveness fails, and say why', async () => {
    const { plane, startAgent, pass, boots } = begin();
    await startAgent();
    plane.put({ stopGraceMs: 0, checks: { liveness: { exec: { command: ['true'] }, periodMs: 1000, failures: 2 } } });
    await pass(10_000);
    expect(last()).toMatchObject({
      ...{ state: 'failed', ready: false, reason: 'LivenessCheckFailed' },
      message: expect.stringContaining('the liveness check failed 2 times in a row: driver "fake" runs no commands'),
    });
    expect(host.world.runningCopies(instanceId)).toBe(0);
    await pass(60_000);
    expect(boots()).toBe(1);
    const startAgain = { order: 1, endedRunAtMs: host.guest()?.startedAtMs ?? 0 };
    plane.put({ generation: 2, startAgain, stopGraceMs: 0, checks: { readiness: { tcp: { port: 80 } } } });
    await pass(30_000);
    expect(last()).toMatchObject({ state: 'running', ready: true });
    expect(boots()).toBe(2);
  });

  it('leave a guest ended when the agent restarts between the verdict and its end', async () => {
    const { plane, startAgent, pass } = begin();
    const agent = await startAgent();
    plane.put({ stopGraceMs: 0, checks: { liveness: { exec: { command: ['true'] }, periodMs: 1000, failures: 1 } } });
    await pass(10_000);
    await agent.stop();
    await startAgent();
    await pass(20_000);
    expect(last()).toMatchObject({ state: 'failed', reason: 'LivenessCheckFailed' });
    expect(host.boots()).toBe(1);
  });

  it('rest while the guest is suspended', async () => {
    const { plane, startAgent, pass } = begin();
    await startAgent();
    const checks = { liveness: { tcp: { port: 80 }, initialDelayMs: 5000, periodMs: 1000, failures: 2 } };
    plane.put({ checks });
    await pass(10_000);
    plane.put({ checks, want: 'suspended', generation: 2 });
    await pass(60_000);
    expect(last()).toMatchObject({ state: 'suspended' });
    plane.put({ checks, generation: 3 });
    await pass(10_000);
    expect(last()).toMatchObject({ state: 'running' });
  });
});
