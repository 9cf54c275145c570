import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { system } from '../../../base/system.ts';
import { untilGuest } from '../conformance.ts';
import type { Driver } from '../driver.ts';
import { makeQemuTestHost, type QemuTestHost, testSpec } from './test-host.ts';
import { boots, internalError, makeStandIn, type StandIn, type StandInGuest } from './test-stand-in.ts';

const never = new AbortController().signal;
const spec = testSpec();
const id = spec.instanceId;

describe('a guest whose QEMU stops', () => {
  let host: QemuTestHost;
  let qemu: StandIn;
  let driver: Driver;

  const open = async (): Promise<void> => {
    driver = host.open({ qemuProgram: qemu.program });
    await driver.recover();
  };
  const guest = () => driver.guests().find(({ instanceId }) => instanceId === id);
  const underTcg = (tcg: StandInGuest) => qemu.plan({ probe: 'fails', kvm: boots, tcg });

  beforeEach(async () => {
    host = await makeQemuTestHost();
    qemu = await makeStandIn(join(host.directory, '..', 'stand-in'), { probe: 'fails', kvm: boots, tcg: boots });
    await open();
  });
  afterEach(async () => {
    for (const { instanceId } of driver.guests()) await driver.remove(instanceId);
    await driver.close();
    await host.dispose();
  });

  it.each([
    ['internal-error', 'failed', 'HypervisorInternalError'],
    ['watchdog', 'failed', 'GuestWatchdog'],
    ['guest-panicked', 'failed', 'GuestPanicked'],
    ['shutdown', 'exited', 'GuestShutdown'],
    ['io-error', 'running', 'DiskError'],
    ['suspended', 'running', 'GuestAsleep'],
    ['debug', 'running', 'HeldByHypervisor'],
    ['prelaunch', 'running', 'HeldByHypervisor'],
    ['of-a-newer-qemu', 'running', 'HeldByHypervisor'],
    ['paused', 'suspended', undefined],
  ] as const)('in the run state %s is %s (%s)', async (enter, state, code) => {
    await underTcg({ enter });
    await driver.create(spec, never);
    const seen = await untilGuest(driver, id, (each) => each?.state === state && each.reason?.code === code);
    expect(seen?.reason?.code).toBe(code);
    // What has ended leaves no process; what may go on keeps it.
    expect(await host.runningCopies(id)).toBe(state === 'failed' || state === 'exited' ? 0 : 1);
  });

  it("says what QEMU said, without the processor's registers", async () => {
    await underTcg({ ...internalError, print: 'berth: ready\n' });
    await driver.create(spec, never);
    const failed = await untilGuest(driver, id, (each) => each?.state === 'failed');
    expect(failed?.reason?.message).toBe(
      'QEMU stopped the guest with an internal error (run state "internal-error"): KVM internal error. Suberror: 1; emulation failure',
    );
  });

  it('while no agent looked is known to the next one', async () => {
    await underTcg({ enter: 'internal-error', afterConnections: 1 });
    await driver.create(spec, never);
    expect(guest()?.state).toBe('running');
    await driver.close();
    await open();
    const failed = await untilGuest(driver, id, (each) => each?.state === 'failed');
    expect(failed?.reason?.code).toBe('HypervisorInternalError');
  });

  it('is described in the words of QEMU, also one that hangs', async () => {
    await underTcg({ enter: 'debug' });
    await driver.create(spec, never);
    expect(await driver.describe?.(id)).toMatch(/^QEMU \(pid \d+\) is in the run state "debug"$/);
    expect(await driver.describe?.('inst_00000000000000000000000099')).toBeUndefined();
    const found = await host.process(id);
    if (found === null) throw new Error('it does not run');
    system.signal(found.pid, 'SIGSTOP');
    expect(await driver.describe?.(id)).toBe(`QEMU (pid ${found.pid}) does not answer`);
  });

  it('that aborts is failed with its last words', async () => {
    await underTcg({ complain: 'kvm.c:3183: Assertion failed.\n', abort: true });
    await expect(driver.create(spec, never)).rejects.toThrow(/exited with code 134.*Assertion failed/);
    expect(guest()).toMatchObject({ state: 'failed', reason: { code: 'HypervisorFailed' } });
  });
});
