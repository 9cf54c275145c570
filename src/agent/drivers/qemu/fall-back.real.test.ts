import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { untilGuest } from '../conformance.ts';
import type { Driver, Guest } from '../driver.ts';
import { makeQemuTestHost, type QemuTestHost, testSpec } from './test-host.ts';
import { boots, internalError, makeStandIn, type StandIn, type StandInPlan } from './test-stand-in.ts';

const never = new AbortController().signal;
const spec = testSpec();
const id = spec.instanceId;
const breaks: StandInPlan = { probe: 'passes', kvm: internalError, tcg: boots };

describe('a guest that KVM cannot run', () => {
  let host: QemuTestHost;
  let qemu: StandIn;
  let driver: Driver;
  const folder = () => join(host.directory, '..', 'stand-in');

  const open = async (accelerator: 'auto' | 'kvm' = 'auto'): Promise<void> => {
    driver = host.open({
      qemuProgram: qemu.program,
      accelerator,
      kvmDevice: join(folder(), 'plan.json'),
      probeTimeoutMs: 100_000,
    });
    await driver.recover();
  };
  const until = (what: (guest: Guest) => boolean) =>
    untilGuest(driver, id, (guest) => guest !== undefined && what(guest));
  const fallen = (guest: Guest): boolean => guest.state === 'running' && guest.accelerator === 'tcg' && guest.ready;
  const record = async (): Promise<Record<string, unknown>> =>
    JSON.parse(await readFile(join(host.directory, id, 'guest.json'), 'utf8'));

  beforeEach(async () => {
    host = await makeQemuTestHost();
    qemu = await makeStandIn(folder(), breaks);
    await open();
  });
  afterEach(async () => {
    for (const { instanceId } of driver.guests()) await driver.remove(instanceId);
    await driver.close();
    await host.dispose();
  });

  it('is started again under TCG, and says so', async () => {
    await driver.create(spec, never);
    const guest = await until(fallen);
    expect(guest?.reason).toEqual({
      code: 'AcceleratorFallback',
      message: expect.stringMatching(
        /^KVM could not run this guest.*KVM internal error. Suberror: 1; emulation failure$/,
      ),
    });
    expect(await host.runningCopies(id)).toBe(1);
    expect(driver.changes?.()).toBe(1);
  });

  it('is not tried under KVM again while the host runs', async () => {
    await driver.create(spec, never);
    await until(fallen);
    await driver.stop(id, 0);
    await driver.start(id);
    expect(driver.guests()).toMatchObject([
      { state: 'running', accelerator: 'tcg', reason: { code: 'AcceleratorFallback' } },
    ]);
    expect(driver.changes?.()).toBe(1);
  });

  it('is restarted once only', async () => {
    await qemu.plan({ ...breaks, tcg: internalError });
    await driver.create(spec, never);
    expect(await until(({ state }) => state === 'failed')).toMatchObject({
      accelerator: 'tcg',
      reason: { code: 'HypervisorInternalError' },
    });
  });

  it('has failed where it had shown a sign of life', async () => {
    await qemu.plan({ ...breaks, kvm: { ...internalError, print: 'Linux version 6.1\n' } });
    await driver.create(spec, never);
    expect(await until(({ state }) => state === 'failed')).toMatchObject({
      accelerator: 'kvm',
      reason: { code: 'HypervisorInternalError' },
    });
    expect(driver.changes?.()).toBe(0);
  });

  it('has failed where the operator allows nothing but KVM', async () => {
    await driver.close();
    await open('kvm');
    await driver.create(spec, never);
    expect(await until(({ state }) => state === 'failed')).toMatchObject({ accelerator: 'kvm' });
  });

  it('has failed where its QEMU aborts, with its last words', async () => {
    await qemu.plan({ ...breaks, kvm: { complain: 'kvm.c:3183: Assertion failed.\n', abort: true } });
    await expect(driver.create(spec, never)).rejects.toThrow(/exited with code 134.*Assertion failed/);
  });

  it('can be removed while it falls back', async () => {
    await driver.create(spec, never);
    await driver.remove(id);
    expect(driver.guests()).toEqual([]);
    expect(await host.traces(id)).toEqual([]);
  });

  describe('whose agent dies', () => {
    const edit = async (change: object): Promise<void> =>
      writeFile(join(host.directory, id, 'guest.json'), JSON.stringify({ ...(await record()), ...change }));
    /** As it was before anything was done about it: QEMU stands there with its error. */
    const leave = async (): Promise<void> => {
      await qemu.plan({ ...breaks, kvm: { ...internalError, afterConnections: 1 } });
      await driver.create(spec, never);
      await driver.close();
    };

    it('before it noticed is started again by the next one', async () => {
      await leave();
      await open();
      expect((await until(fallen))?.reason?.code).toBe('AcceleratorFallback');
    });

    it('between its decision and the end of QEMU is started again by the next one', async () => {
      await leave();
      await edit({ fallback: await pending() });
      await open();
      expect((await until(fallen))?.reason?.code).toBe('AcceleratorFallback');
    });

    it('between the end of QEMU and the second start is started again by the next one', async () => {
      await leave();
      await host.kill(id);
      await edit({ fallback: await pending() });
      await open();
      expect((await until(fallen))?.reason?.code).toBe('AcceleratorFallback');
      expect(await record()).toMatchObject({ fallback: { pending: false } });
    });

    it('after the second start runs on', async () => {
      await driver.create(spec, never);
      await until(fallen);
      const before = await host.process(id);
      await driver.close();
      await edit({ fallback: await pending() });
      await open();
      expect(await until(fallen)).toMatchObject({ reason: { code: 'AcceleratorFallback' } });
      expect(await host.process(id)).toEqual(before);
      expect(await record()).toMatchObject({ fallback: { pending: false } });
    });

    const pending = async () => ({
      hostBootId: (await record())['hostBootId'],
      pending: true,
      reason: { code: 'AcceleratorFallback', message: 'KVM could not run this guest' },
    });
  });
});
