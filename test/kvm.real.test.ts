// KVM as this machine has it, be it sound, broken or absent: what the probe says of it, and what becomes of a real guest that it cannot run.

import { constants } from 'node:fs';
import { access, chmod, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { untilGuest } from '../src/agent/drivers/conformance.ts';
import { createQemuDriver } from '../src/agent/drivers/qemu/driver.ts';
import { type ProbeImage, probeAccelerator } from '../src/agent/drivers/qemu/kvm-probe.ts';
import { testPortRange, testSpec } from '../src/agent/drivers/qemu/test-host.ts';
import { hostBootId } from '../src/agent/drivers/guest-life/host-boot.ts';
import { runTool } from '../src/agent/host/run-tool.ts';
import { earlierBuild } from '../src/agent/images/build/build.ts';
import { silentLogger } from '../src/base/log.ts';
import { seededPrng } from '../src/base/prng.ts';
import { systemClock } from '../src/base/system.ts';
import { imageDirectory, tinyImage } from './tiny-image.ts';

const never = new AbortController().signal;
let directory: string;
let image: ProbeImage;

beforeAll(async () => {
  await tinyImage();
  const found = await earlierBuild('tiny', ['/nowhere', imageDirectory]);
  if (found === undefined) throw new Error('the tiny image was built, and is not found');
  image = found;
  directory = await mkdtemp(join(tmpdir(), 'berth-kvm-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

describe('the kernel of the tiny image', () => {
  it('reaches its first line as a probe', async () => {
    const options = { program: 'qemu-system-x86_64', clock: systemClock, timeoutMs: 100_000, image };
    expect(await probeAccelerator('tcg', options)).toEqual({ works: true });
  });
});

/** Some processors' KVM aborts QEMU over one feature; without it a boot sector runs there, and a kernel may still not. */
async function lessParticularQemu(): Promise<string> {
  const program = join(directory, 'qemu');
  const script = `#!/bin/bash
words=("$@")
for i in "\${!words[@]}"; do [ "\${words[$i]}" = host ] && words[$i]=host,-arch-capabilities; done
exec qemu-system-x86_64 "\${words[@]}"
`;
  await writeFile(program, script);
  await chmod(program, 0o755);
  return program;
}

/** As after a probe that passed. */
async function trustKvm(guests: string, program: string): Promise<void> {
  await mkdir(guests, { recursive: true });
  const version = await runTool(systemClock, { program, arguments: ['--version'], timeoutMs: 100_000 });
  const answer = { hostBootId: await hostBootId(), qemuVersion: version.output, works: true, reason: '' };
  await writeFile(join(guests, 'kvm-probe.json'), JSON.stringify(answer));
}

describe('a guest under KVM', () => {
  it('boots, also where KVM stops its kernel: then under TCG, which it says', async (test) => {
    const usable = await access('/dev/kvm', constants.R_OK | constants.W_OK).then(
      () => true,
      () => false, // then auto means TCG, which other tests show
    );
    if (!usable) test.skip('there is no usable /dev/kvm on this machine');
    const program = await lessParticularQemu();
    const kernel = await probeAccelerator('kvm', { program, clock: systemClock, timeoutMs: 60_000, image });
    if (!kernel.works && !kernel.reason.includes('internal error'))
      test.skip(`KVM of this machine neither runs a kernel nor says that it cannot: ${kernel.reason}`);
    const guests = join(directory, 'guests');
    await trustKvm(guests, program);
    const driver = createQemuDriver({
      directory: guests,
      images: {
        ensure: async () => ({ ...image, format: 'qcow2', virtualSizeBytes: 32 * 1024 ** 2 }),
        list: async () => [],
      },
      clock: systemClock,
      prng: seededPrng(1),
      log: silentLogger,
      portRange: testPortRange,
      qemuProgram: program,
    });
    try {
      await driver.recover();
      const spec = testSpec({ memoryMiB: 128 });
      await driver.create(spec, never);
      const guest = await untilGuest(
        driver,
        spec.instanceId,
        (each) => each?.ready === true || each?.state === 'failed',
      );
      expect(guest).toMatchObject({ state: 'running', accelerator: kernel.works ? 'kvm' : 'tcg' });
      expect(guest?.reason?.code).toBe(kernel.works ? undefined : 'AcceleratorFallback');
    } finally {
      for (const { instanceId } of driver.guests()) await driver.remove(instanceId);
      await driver.close();
    }
  });
});
