import { spawnSync } from 'node:child_process';
import { chmod, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { system } from '../../../base/system.ts';
import { driverConformance, untilGuest } from '../conformance.ts';
import type { Driver } from '../driver.ts';
import { asOwnUser } from './own-user.ts';
import { makeQemuTestHost, type QemuTestHost, testSpec } from './test-host.ts';

const never = new AbortController().signal;
const users = { first: 1_900_100_000, count: 1000 };
const ann = testSpec({ instanceId: `inst_${'0'.repeat(25)}1` });
const ben = testSpec({ instanceId: `inst_${'0'.repeat(25)}2` });
const reason = system.userId() === 0 ? undefined : 'only root may run guests as somebody else';

describe('the call of QEMU as a user of its own', () => {
  const call = { program: 'qemu', arguments: ['-netdev', 'tap,fd=TAP-DESCRIPTOR'] };
  const user = { id: 5001, groups: [] };
  const words = (change: Partial<Parameters<typeof asOwnUser>[1]>) => {
    const made = asOwnUser(call, { user, hostPorts: [], ...change });
    return [made.program, ...made.arguments].join(' ');
  };

  it('has no capability and no group, and can get none', () => {
    expect(words({})).toBe(
      'setpriv --reuid 5001 --regid 5001 --clear-groups --inh-caps=-all --ambient-caps=-all --bounding-set=-all --no-new-privs -- qemu -netdev tap,fd=TAP-DESCRIPTOR',
    );
  });
  it('may listen on a port that is not everybody’s, where the guest has one', () => {
    expect(words({ hostPorts: [8080, 80] })).toContain('--ambient-caps=-all,+net_bind_service');
    expect(words({ hostPorts: [8080, 1024] })).not.toContain('net_bind_service');
  });
  it('has the group of /dev/kvm where it runs under KVM', () => {
    expect(words({ user: { id: 5001, groups: [108] } })).toContain('--groups 108');
  });
  it('gets its tap opened before it is nobody', () => {
    expect(words({ tap: 'bt1' })).toMatch(/^perl -e .* bt1 setpriv --reuid 5001 /);
  });
});

describe.skipIf(reason !== undefined)(`QEMU as a user of its own${reason ? ` (${reason})` : ''}`, () => {
  let host: QemuTestHost;
  let driver: Driver;
  beforeEach(async () => {
    host = await makeQemuTestHost();
    driver = host.open({ users });
    await driver.recover();
  });
  afterEach(async () => {
    for (const each of driver.guests()) await driver.remove(each.instanceId);
    await driver.close();
    await host.dispose();
  });
  const start = async (spec: typeof ann): Promise<string> => {
    await driver.create(spec, never);
    await untilGuest(driver, spec.instanceId, (guest) => guest?.ready === true);
    const found = await host.process(spec.instanceId);
    return readFile(`/proc/${found?.pid}/status`, 'utf8');
  };
  const idOf = (status: string): number => Number(/^Uid:\t(\d+)\t\1\t\1\t\1$/m.exec(status)?.[1]);

  it('each guest has another, without any right', async () => {
    const [first, second] = [await start(ann), await start(ben)];
    for (const status of [first, second]) {
      expect(idOf(status)).toBeGreaterThanOrEqual(users.first);
      expect(status).toMatch(/^Groups:\t *$/m);
      expect(status).toMatch(/^CapEff:\t0+$/m);
      expect(status).toMatch(/^CapBnd:\t0+$/m);
      expect(status).toMatch(/^NoNewPrivs:\t1$/m);
      expect(status).toMatch(/^Seccomp:\t2$/m);
    }
    expect(idOf(first)).not.toBe(idOf(second));
  });

  it('it reaches its own disk and console, and nothing of another guest, of its record or of the host', async () => {
    const user = idOf(await start(ann));
    await start(ben);
    const can = (test: string, path: string): boolean =>
      spawnSync('setpriv', [
        ...['--reuid', String(user), '--regid', String(user), '--clear-groups', '--', 'test', test, path],
      ]).status === 0;
    const own = (name: string) => join(host.directory, ann.instanceId, name);
    const other = (name: string) => join(host.directory, ben.instanceId, name);
    expect(can('-w', own('disk.qcow2'))).toBe(true);
    expect(can('-w', own('run'))).toBe(true);
    for (const name of ['guest.json', 'qemu.stderr']) expect(can('-r', own(name))).toBe(false);
    for (const name of ['', 'guest.json', 'qemu.stderr']) expect(can('-w', own(name))).toBe(false);
    for (const name of ['disk.qcow2', 'console.log', 'seed.iso', 'guest.json', 'run', 'run/qmp.sock'])
      expect(can('-r', other(name)), name).toBe(false);
    expect(can('-r', host.directory)).toBe(false);
  });

  it('a port below 1024 is published all the same', async () => {
    const status = await start({ ...ann, ports: [{ guestPort: 80, hostPort: 1023, protocol: 'tcp' }] });
    expect(status).toMatch(/^CapEff:\t0*400$/m); // CAP_NET_BIND_SERVICE alone
    expect(await host.portTaken(1023)).toBe(true);
  });

  it('a guest that ran as the agent does has one from its next start, and the other way round', async () => {
    await driver.close();
    driver = host.open();
    await driver.recover();
    expect(idOf(await start(ann))).toBe(0);
    await driver.stop(ann.instanceId, 0);
    await driver.close();
    driver = host.open({ users });
    await driver.recover();
    const restarted = async (): Promise<number> => {
      await driver.start(ann.instanceId);
      await untilGuest(driver, ann.instanceId, (guest) => guest?.ready === true);
      return idOf(await readFile(`/proc/${(await host.process(ann.instanceId))?.pid}/status`, 'utf8'));
    };
    const user = await restarted();
    expect(user).toBeGreaterThanOrEqual(users.first);
    await driver.stop(ann.instanceId, 0);
    expect(await restarted()).toBe(user);
    await driver.stop(ann.instanceId, 0);
    await driver.close();
    driver = host.open();
    await driver.recover();
    expect(await restarted()).toBe(0);
  });

  it('where a folder is closed to others QEMU runs as the agent does, and it is said', async () => {
    await chmod(join(host.directory, '..'), 0o700);
    expect(idOf(await start(ann))).toBe(0);
    const { reason: told } = await driver.fingerprint();
    expect(told).toContain(`QEMU runs as the agent's user, for ${join(host.directory, '..')} is closed to others`);
    expect((await stat(join(host.directory, '..'))).mode & 0o777).toBe(0o700); // that is not ours to change
  });

  driverConformance('the QEMU driver with a user for each guest', async () => {
    const tested = await makeQemuTestHost();
    return { ...tested, open: () => tested.open({ users }) };
  });
});
