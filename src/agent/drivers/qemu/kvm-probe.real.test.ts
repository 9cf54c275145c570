import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { systemClock } from '../../../base/system.ts';
import { kvmWorks, probeAccelerator } from './kvm-probe.ts';

const options = { program: 'qemu-system-x86_64', clock: systemClock, timeoutMs: 20_000 };

describe('the probe of an accelerator', () => {
  it('says that TCG works, having run a guest under it', async () => {
    expect(await probeAccelerator('tcg', options)).toEqual({ works: true });
  });

  it('says that a guest hung, and waits no longer than it may', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'berth-probe-test-'));
    const program = join(directory, 'hanging-qemu');
    await writeFile(program, '#!/bin/sh\nexec sleep 600\n');
    await chmod(program, 0o755);
    expect(await probeAccelerator('kvm', { ...options, program, timeoutMs: 200 })).toEqual({
      works: false,
      reason: 'a probe guest hung under it',
    });
    await rm(directory, { recursive: true });
  });

  it('says what QEMU said when it fails, or that there is none', async () => {
    expect(await probeAccelerator('kvm', { ...options, program: '/bin/false' })).toMatchObject({ works: false });
    expect(await probeAccelerator('kvm', { ...options, program: '/nonexistent' })).toMatchObject({
      works: false,
      reason: expect.stringContaining('ENOENT'),
    });
  });

  it('remembers its answer for this boot and this QEMU', async () => {
    const directory = await mkdtemp(join(tmpdir(), 'berth-probe-test-'));
    const memoryPath = join(directory, 'kvm.json');
    const ask = (program: string, qemuVersion: string) =>
      kvmWorks({ ...options, program, kvmDevice: '/dev/kvm', timeoutMs: 5000, memoryPath, qemuVersion });
    const first = await ask('qemu-system-x86_64', '1');
    const remembers = await readFile(memoryPath).then(
      () => true,
      () => false, // no /dev/kvm on this host: nothing to remember
    );
    expect(await ask('/nonexistent', '1')).toEqual(first);
    if (remembers)
      expect(await ask('/nonexistent', '2')).toMatchObject({ works: false, reason: expect.stringContaining('ENOENT') });
    await rm(directory, { recursive: true });
  });
});
