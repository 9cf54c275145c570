import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../base/system.ts';
import type { AcceleratorSetting } from '../accelerator-setting.ts';
import { createHostLook, type HostLook } from './host-look.ts';
import type { ProbeImage } from './kvm-probe.ts';
import { boots, makeStandIn, type StandIn, type StandInPlan } from './test-stand-in.ts';

describe('what guests of a host run under', () => {
  let directory: string;
  let qemu: StandIn;
  const kvm = () => join(directory, 'kvm');

  beforeEach(async () => {
    directory = await mkdtemp(join(tmpdir(), 'berth-look-'));
    await writeFile(kvm(), '');
    qemu = await makeStandIn(directory, { probe: 'passes', kvm: boots, tcg: boots });
  });
  afterEach(() => rm(directory, { recursive: true }));

  const look = (
    accelerator: AcceleratorSetting,
    kvmDevice = kvm(),
    image?: ProbeImage | (() => ProbeImage | undefined),
  ) =>
    createHostLook({
      clock: systemClock,
      qemu: qemu.program,
      qemuImg: 'true',
      root: async () => directory,
      accelerator,
      kvmDevice,
      probeTimeoutMs: 100_000, // the machine may be busy
      probeImage: async () => (typeof image === 'function' ? image() : image),
    });
  const probe = (outcome: StandInPlan['probe']) => qemu.plan({ probe: outcome, kvm: boots, tcg: boots });

  it.each([
    ['auto', 'passes', 'kvm'],
    ['auto', 'fails', 'tcg'],
    ['kvm', 'passes', 'kvm'],
    ['tcg', 'passes', 'tcg'],
    ['tcg', 'fails', 'tcg'],
  ] as const)('with the setting %s, where the probe of KVM %s, is %s', async (setting, outcome, accelerator) => {
    await probe(outcome);
    const host = look(setting);
    expect(await host.fingerprint()).toMatchObject({ available: true, accelerator });
    expect(await host.chosenAccelerator()).toBe(accelerator);
  });

  const fail = async (host: HostLook, image: string): Promise<void> =>
    host.fallBack?.({ image, reason: 'KVM internal error' });

  it('is looked at again after KVM failed a guest: the probe decides, until a second image fails', async () => {
    const host = look('auto');
    expect(await host.chosenAccelerator()).toBe('kvm');
    await fail(host, 'sha256:a');
    await fail(host, 'sha256:a');
    expect(host.changes()).toBe(2);
    expect(await host.chosenAccelerator()).toBe('kvm');
    await fail(host, 'sha256:b');
    expect(await host.chosenAccelerator()).toBe('tcg');
    const reason = expect.stringMatching(
      /^KVM is not usable: guests of 2 images stopped under it: KVM internal error; /,
    );
    expect(await host.fingerprint()).toMatchObject({ available: true, accelerator: 'tcg', reason });
    expect(await look('auto').fingerprint()).toMatchObject({ accelerator: 'tcg', reason });
  });

  it('is TCG once the probe fails that passed before', async () => {
    const host = look('auto');
    expect(await host.chosenAccelerator()).toBe('kvm');
    await probe('fails');
    expect(await host.chosenAccelerator()).toBe('kvm');
    await fail(host, 'sha256:a');
    expect(await host.chosenAccelerator()).toBe('tcg');
  });

  describe('with a kernel at hand', () => {
    const image = { path: '/images/tiny.qcow2', digest: 'sha256:tiny' };
    const both = (sector: StandInPlan['probe'], kernel: NonNullable<StandInPlan['kernelProbe']>) =>
      qemu.plan({ probe: sector, kernelProbe: kernel, kvm: boots, tcg: boots });

    it('is KVM once the kernel has written a line', async () => {
      await both('fails', 'passes');
      expect(await look('auto', kvm(), image).fingerprint()).toMatchObject({ accelerator: 'kvm' });
    });

    it('is TCG where a boot sector runs and the kernel does not, and that is remembered', async () => {
      await both('passes', 'internal-error');
      const verdict = {
        accelerator: 'tcg',
        reason:
          'KVM is not usable: KVM opens, but a probe guest failed under it (internal error): KVM internal error. Suberror: 1; emulation failure; guests run under TCG, ten times slower',
      };
      expect(await look('auto', kvm(), image).fingerprint()).toMatchObject(verdict);
      await both('passes', 'passes');
      expect(await look('auto', kvm(), image).fingerprint()).toMatchObject(verdict);
      expect(await look('auto').fingerprint()).toMatchObject(verdict);
    });

    it('is found out again where only a boot sector was tried before', async () => {
      await both('passes', 'fails');
      const atHand: ProbeImage[] = [];
      const host = look('auto', kvm(), () => atHand[0]);
      expect(await host.fingerprint()).toMatchObject({ accelerator: 'kvm' });
      expect(await host.chosenAccelerator()).toBe('kvm');
      atHand.push(image);
      expect(await host.fingerprint()).toMatchObject({ accelerator: 'tcg' });
      expect(await host.chosenAccelerator()).toBe('tcg');
    });
  });

  it('is left as it is where the setting allows nothing else', () => {
    expect(look('kvm').fallBack).toBeUndefined();
    expect(look('tcg').fallBack).toBeUndefined();
  });

  it.each([
    [
      'does not run a guest',
      'kvm',
      /^KVM is not usable: KVM opens, but a probe guest failed under it.*"accelerator: kvm"/,
    ],
    ['is not there', 'absent', /^KVM is not usable: there is no usable .*absent/],
  ])('is nothing with the setting kvm, where KVM %s', async (_, device, reason) => {
    await probe('fails');
    const host = look('kvm', join(directory, device));
    expect(await host.fingerprint()).toMatchObject({ available: false, reason: expect.stringMatching(reason) });
    await expect(host.chosenAccelerator()).rejects.toThrow(reason);
  });
});
