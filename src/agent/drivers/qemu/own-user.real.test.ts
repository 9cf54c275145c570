import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, readFile, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import { system } from '../../../base/system.ts';
import type { HostGuard } from '../../network/host-guard.ts';
import { untilGuest } from '../conformance.ts';
import type { Driver, GuestVolume } from '../driver.ts';
import type { GuestUsers } from '../../host/guest-user.ts';
import { asOwnUser, createOwnUsers } from './own-user.ts';
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

/** Whom the host is closed to besides, each time. */
function notingGuard({ wasClosed }: { readonly wasClosed: boolean }) {
  const closedTo: (readonly number[])[] = [];
  const guard: HostGuard = {
    close: async (besides = []) => void closedTo.push(besides),
    open: async () => {},
    adopt: async () => wasClosed,
    fault: async () => undefined,
    leave: async () => {},
    stop() {},
  };
  return { closedTo, guard };
}

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

  it('it reads its own program, and cannot change it', async () => {
    const runDisk = (await host.makeRunDisk?.()) ?? expect.unreachable();
    const user = idOf(await start({ ...ann, runDisk }));
    const disk = join(host.directory, ann.instanceId, 'run.img');
    const { uid, gid, mode } = await stat(disk);
    expect({ uid, gid, mode: mode & 0o777 }).toEqual({ uid: 0, gid: user, mode: 0o640 });
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

  describe('its volumes', () => {
    const volumeId = `vol_${'1'.repeat(26)}`;
    const set = (spec: typeof ann, volumes: readonly GuestVolume[]): Promise<void> =>
      driver.volumes?.set(spec.instanceId, volumes, never) ?? expect.unreachable();
    const openBy = (spec: typeof ann) => host.guestVolumes.openBy(spec.instanceId);
    const ownerOf = async ({ path }: GuestVolume): Promise<string> => {
      const { uid, gid, mode } = await stat(path);
      return `${uid}:${gid} ${(mode & 0o777).toString(8)}`;
    };
    let volume: GuestVolume;
    beforeEach(async () => {
      volume = await host.guestVolumes.make(volumeId);
    });

    it('are its own from its start until they are taken from it, and then the next guest’s', async () => {
      const first = idOf(await start({ ...ann, volumes: [volume] }));
      expect(await openBy(ann)).toEqual([volumeId]);
      expect(await ownerOf(volume)).toBe(`${first}:${first} 600`);
      await driver.stop(ann.instanceId, 0);
      await set(ann, []);
      expect(await ownerOf(volume)).toBe('0:0 600');
      const second = idOf(await start(ben));
      await set(ben, [volume]);
      expect(await openBy(ben)).toEqual([volumeId]);
      expect(await ownerOf(volume)).toBe(`${second}:${second} 600`);
      await driver.volumes?.grow(ben.instanceId, volumeId, 2 * 1024 * 1024);
      await driver.volumes?.snapshot(ben.instanceId, volumeId, 'make', 'a');
      expect(await host.guestVolumes.look(volumeId)).toEqual({ sizeBytes: 2 * 1024 * 1024, snapshots: ['a'] });
      await driver.remove(ben.instanceId);
      expect(await ownerOf(volume)).toBe('0:0 600');
    });

    it('are only for it to read where it may only read them', async () => {
      const user = idOf(await start({ ...ann, volumes: [{ ...volume, readOnly: true }] }));
      expect(await openBy(ann)).toEqual([volumeId]);
      expect(await ownerOf(volume)).toBe(`0:${user} 640`);
      await driver.remove(ann.instanceId);
      expect(await ownerOf(volume)).toBe('0:0 600');
    });

    it('stay another guest’s as long as that one has them', async () => {
      const user = idOf(await start({ ...ann, volumes: [volume] }));
      await start(ben);
      await expect(set(ben, [volume])).rejects.toThrow(`${ann.instanceId} has it`);
      expect(await ownerOf(volume)).toBe(`${user}:${user} 600`);
      await driver.stop(ann.instanceId, 0);
      await expect(set(ben, [volume])).rejects.toThrow(`${ann.instanceId} has it`);
      await set(ann, []);
      await set(ben, [volume]);
      expect(await openBy(ben)).toEqual([volumeId]);
    });

    it('are root’s when it runs as the agent does, and again its own when it has a user', async () => {
      const user = idOf(await start({ ...ann, volumes: [volume] }));
      const rerun = async (change: { readonly users?: GuestUsers }): Promise<string> => {
        await driver.stop(ann.instanceId, 0);
        await driver.close();
        driver = host.open(change);
        await driver.recover();
        await driver.start(ann.instanceId);
        expect(await openBy(ann)).toEqual([volumeId]);
        return ownerOf(volume);
      };
      expect(await rerun({})).toBe('0:0 600');
      for (const name of ['disk.qcow2', 'console.log', 'seed.iso'])
        expect(await stat(join(host.directory, ann.instanceId, name))).toMatchObject({ uid: 0, gid: 0 });
      expect(await rerun({ users })).toBe(`${user}:${user} 600`);
      expect(await rerun({ users: { first: users.first + 5000, count: 1 } })).toBe('1900105000:1900105000 600');
    });

    it('made by an older agent, where nobody else could get to them, are opened for it', async () => {
      await chmod(join(volume.path, '..'), 0o700);
      await start({ ...ann, volumes: [volume] });
      expect(await openBy(ann)).toEqual([volumeId]);
      expect((await stat(join(volume.path, '..'))).mode & 0o777).toBe(0o711);
    });

    it('in a folder that is closed to others do not come to a guest that runs, and the next start is the agent’s own', async () => {
      await start(ann);
      await chmod(join(volume.path, '..', '..'), 0o700);
      await expect(set(ann, [volume])).rejects.toThrow('is closed to others: chmod o+x');
      expect(await ownerOf(volume)).toBe('0:0 600');
      await driver.stop(ann.instanceId, 0);
      await set(ann, [volume]);
      await driver.start(ann.instanceId);
      expect(await openBy(ann)).toEqual([volumeId]);
      expect(await ownerOf(volume)).toBe('0:0 600');
    });
  });

  it('has a user again when it is removed and made anew, out of as many as there are guests', async () => {
    await driver.close();
    const one = { first: users.first + 6000, count: 1 };
    driver = host.open({ users: one });
    await driver.recover();
    for (let round = 0; round < 2; round++) {
      expect(idOf(await start(ann))).toBe(one.first);
      await expect(driver.create(ben, never)).rejects.toThrow('all 1 of guestUsers are taken');
      await driver.remove(ann.instanceId);
      await driver.remove(ben.instanceId);
    }
  });

  it('none is given that anybody else on the host runs as', async () => {
    await driver.close();
    const two = { first: users.first + 7000, count: 2 };
    driver = host.open({ users: two });
    await driver.recover();
    const user = idOf(await start(ann));
    await driver.stop(ann.instanceId, 0);
    const stranger = spawn('setpriv', ['--reuid', String(user), '--clear-groups', '--', 'cat'], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    try {
      stranger.stdin.write('.');
      await once(stranger.stdout, 'data');
      await driver.start(ann.instanceId);
      const status = await readFile(`/proc/${(await host.process(ann.instanceId))?.pid}/status`, 'utf8');
      expect(idOf(status)).not.toBe(user);
      expect(await stat(join(host.directory, ann.instanceId, 'disk.qcow2'))).toMatchObject({ uid: idOf(status) });
    } finally {
      stranger.stdin.end();
      await once(stranger, 'exit');
    }
  });

  it('a guest that an agent without users started runs on, and can be got into and given volumes', async () => {
    await driver.close();
    driver = host.open();
    await driver.recover();
    expect(idOf(await start(ann))).toBe(0);
    await driver.close();
    driver = host.open({ users });
    await driver.recover();
    expect(driver.guests()).toMatchObject([{ state: 'running' }]);
    const volume = await host.guestVolumes.make(`vol_${'1'.repeat(26)}`);
    await driver.volumes?.set(ann.instanceId, [volume], never);
    expect(await host.guestVolumes.openBy(ann.instanceId)).toEqual([volume.volumeId]);
    expect(await stat(volume.path)).toMatchObject({ uid: 0 });
  });

  it('a guest that runs is kept from its host also when the agent comes back with other users', async () => {
    const user = idOf(await start(ann));
    await driver.close();
    const { closedTo, guard } = notingGuard({ wasClosed: true });
    driver = host.open({ users: { first: users.first + 5000, count: 10 }, hostGuard: guard });
    await driver.recover();
    expect(closedTo).toEqual([[user]]);
    await driver.stop(ann.instanceId, 0);
    await driver.start(ann.instanceId);
    expect(closedTo).toEqual([[user], []]);
  });

  it('a guest does not start without its rules where nftables work, and does where they do not', async () => {
    await start(ann);
    await driver.stop(ann.instanceId, 0);
    const rerun = async (fault: string | undefined): Promise<void> => {
      await driver.close();
      const { guard } = notingGuard({ wasClosed: false });
      const refusing: HostGuard = {
        ...guard,
        close: () => Promise.reject(new Error('no such rule')),
        fault: async () => fault,
      };
      driver = host.open({ users, hostGuard: refusing });
      await driver.recover();
      await driver.start(ann.instanceId);
    };
    await expect(rerun(undefined)).rejects.toThrow(/do not load: no such rule/);
    expect(await host.runningCopies(ann.instanceId)).toBe(0);
    await rerun('nft is not installed');
    expect(await host.runningCopies(ann.instanceId)).toBe(1);
    expect((await driver.fingerprint()).reason).toContain('link-local addresses: nft is not installed');
  });

  it.each([
    ['and stays closed to guests of before, where new ones have a network', { wasClosed: true, networked: true }, [[]]],
    ['and is not, where all have had a network', { wasClosed: false, networked: true }, []],
    ['and is at once, where it never was', { wasClosed: false, networked: false }, [[]]],
  ])('the host is closed when the agent comes back, %s', async (_, { wasClosed, networked }, expected) => {
    await start(ann);
    const { closedTo, guard } = notingGuard({ wasClosed });
    const root = async () => host.directory;
    await createOwnUsers({ users, root, guard, networked, log: silentLogger }).settle();
    expect(closedTo).toEqual(expected);
  });

  it('where a folder is closed to others QEMU runs as the agent does, and it is said', async () => {
    await chmod(join(host.directory, '..'), 0o700);
    expect(idOf(await start(ann))).toBe(0);
    const { reason: told } = await driver.fingerprint();
    expect(told).toContain(`QEMU runs as the agent's user, for ${join(host.directory, '..')} is closed to others`);
    expect((await stat(join(host.directory, '..'))).mode & 0o777).toBe(0o700); // that is not ours to change
  });
});
