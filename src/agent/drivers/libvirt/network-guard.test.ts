import { mkdir, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { silentLogger } from '../../../base/log.ts';
import type { HostGuard } from '../../network/host-guard.ts';
import { NetworkGuard, userOf } from './network-guard.ts';

const capabilities = (user: number): string => `<capabilities><host>
  <secmodel><model>apparmor</model><doi>0</doi><baselabel type='kvm'>+7:+7</baselabel></secmodel>
  <secmodel><model>dac</model><doi>0</doi><baselabel type='kvm'>+${user}:+${user}</baselabel><baselabel type='qemu'>+${user}:+${user}</baselabel></secmodel>
</host></capabilities>`;
const id = (number: number): string => `inst_${'0'.repeat(25)}${number}`;

it('the user is the one of the DAC model, and never root', () => {
  expect(userOf(capabilities(64_055))).toBe(64_055);
  expect(userOf(capabilities(0))).toBeUndefined();
  expect(userOf('<capabilities><host/></capabilities>')).toBeUndefined();
});

describe("libvirt's user", () => {
  let directory: string;
  let acts: string[];
  let refusal: { readonly error: string; readonly fault?: string } | undefined;
  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-guard-'));
    acts = [];
    refusal = undefined;
  });
  afterEach(() => rm(directory, { recursive: true }));

  const make = ({ user = 64_055, inUse = true, wasClosed = false } = {}): NetworkGuard => {
    const guard: HostGuard = {
      async close(users = []) {
        if (refusal !== undefined) throw new Error(refusal.error);
        acts.push(`close ${users.join()}`);
      },
      open: async (unused) => void (unused() && acts.push('open')),
      adopt: async () => wasClosed,
      fault: async () => refusal?.fault,
      leave: async () => {},
      stop() {},
    };
    const root = async () => directory;
    return new NetworkGuard({ guard, capabilities: async () => capabilities(user), root, inUse, log: silentLogger });
  };
  const guest = (number: number) => ({
    instanceId: id(number),
    directory: join(directory, id(number)),
    log: silentLogger,
  });

  it('is closed out before a guest starts, until the last of them is gone', async () => {
    const guard = make();
    await guard.close(guest(1));
    await guard.close(guest(2));
    await guard.forget(guest(1).directory);
    expect(acts).toEqual(['close 64055', 'close 64055']);
    await guard.forget(guest(2).directory);
    expect(acts.at(-1)).toBe('open');
  });

  it('is closed out again when an agent comes back to guests', async () => {
    await mkdir(guest(1).directory);
    await make().settle();
    await make({ inUse: false, wasClosed: true }).settle();
    expect(acts).toEqual(['close 64055', 'close 64055']);
    await make({ inUse: false }).settle();
    expect(acts).toHaveLength(2);
    await rm(guest(1).directory, { recursive: true });
    await make({ wasClosed: true }).settle();
    expect(acts.at(-1)).toBe('open');
  });

  it('is let alone where it is root, and that is said', async () => {
    const guard = make({ user: 0 });
    await guard.close(guest(1));
    expect(acts).toEqual([]);
    expect(await guard.fault()).toContain('libvirt runs QEMU as root');
    expect(await make().fault()).toBeUndefined();
  });

  it('gets no guest where nftables work and the rules do not load', async () => {
    refusal = { error: 'no such rule' };
    await expect(make().close(guest(1))).rejects.toThrow('do not load: no such rule');
    refusal = { error: 'no nft', fault: 'nft is not installed' };
    await make().close(guest(1));
    expect(await make().fault()).toContain('nft is not installed');
  });
});
