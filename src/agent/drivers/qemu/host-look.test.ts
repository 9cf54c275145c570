import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../../base/system.ts';
import type { AcceleratorSetting } from '../accelerator-setting.ts';
import { createHostLook, type HostLook } from './host-look.ts';
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

  const look = (accelerator: AcceleratorSetting, kvmDevice = kvm()) =>
    createHostLook({
      clock: systemClock,
      qemu: qemu.program,
      qemuImg: 'true',
      root: async () => directory,
      accelerator,
      kvmDevice,
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
