// Finds out whether KVM really runs a guest here, by running one: there are hosts where /dev/kvm opens, yet a guest hangs
// or aborts. Remembers the answer for this boot of the host and this QEMU.

import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Type } from 'typebox';
import { Check } from 'typebox/value';
import type { Clock } from '../../../base/clock.ts';
import { bootDisk } from './boot-sector.ts';
import { acceleratorArguments, sandbox } from './command-line.ts';
import { writeWhole } from '../vm/guest-record.ts';
import { hostBootId } from '../vm/host-boot.ts';
import { toolEnvironment } from '../vm/run-tool.ts';

export interface ProbeOptions {
  readonly program: string;
  readonly clock: Clock;
  /** A sound KVM needs well under one second. */
  readonly timeoutMs: number;
}

/** `works`, or why not: "a probe guest hung under it". */
export type ProbeResult = { readonly works: true } | { readonly works: false; readonly reason: string };

const Remembered = Type.Object({
  hostBootId: Type.String(),
  qemuVersion: Type.String(),
  works: Type.Boolean(),
  reason: Type.String(),
});

/** As `probeAccelerator` for KVM, but once per boot of the host and version of QEMU. */
export async function kvmWorks(
  options: ProbeOptions & { readonly kvmDevice: string; readonly memoryPath: string; readonly qemuVersion: string },
): Promise<ProbeResult> {
  const now = { hostBootId: await hostBootId(), qemuVersion: options.qemuVersion };
  const before = await readRemembered(options.memoryPath);
  if (before !== null && before.hostBootId === now.hostBootId && before.qemuVersion === now.qemuVersion) {
    return before.works ? { works: true } : { works: false, reason: before.reason };
  }
  const canOpen = await access(options.kvmDevice, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  // Not remembered: loading a module or a change of rights mends it without a reboot, and asking costs nothing.
  if (!canOpen) return { works: false, reason: `there is no usable ${options.kvmDevice}` };
  const result = await probeAccelerator('kvm', options);
  await writeWhole(
    options.memoryPath,
    JSON.stringify({ ...now, works: result.works, reason: result.works ? '' : `KVM opens, but ${result.reason}` }),
  );
  return result.works ? result : { works: false, reason: `KVM opens, but ${result.reason}` };
}

const mark = 'berth: probe';
const exitValue = 0x31;

/** Runs a guest of one sector that writes a mark and ends QEMU with a code of its own. */
export async function probeAccelerator(accelerator: 'kvm' | 'tcg', options: ProbeOptions): Promise<ProbeResult> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-probe-'));
  try {
    const disk = bootDisk([
      { do: 'print', text: `${mark}\n` },
      { do: 'debug-exit', value: exitValue },
    ]);
    await writeFile(join(directory, 'disk.raw'), disk, { mode: 0o600 });
    const end = await runProbe(directory, accelerator, options);
    if (end.how === 'timeout') return { works: false, reason: 'a probe guest hung under it' };
    if (end.how === 'exit' && end.code === 2 * exitValue + 1 && end.output.includes(mark)) return { works: true };
    const words = end.output.trim().split('\n').slice(-1).join('').slice(0, 200);
    return {
      works: false,
      reason: `a probe guest failed under it (${end.how === 'exit' ? `exit code ${end.code}` : end.how}): ${words}`,
    };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

type ProbeEnd =
  | { readonly how: 'exit'; readonly code: number; readonly output: string }
  | { readonly how: 'timeout' | 'signal'; readonly output: string };

function runProbe(directory: string, accelerator: 'kvm' | 'tcg', options: ProbeOptions): Promise<ProbeEnd> {
  return new Promise((resolve) => {
    const child = spawn(options.program, probeArguments(accelerator), {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...toolEnvironment },
    });
    let output = '';
    const collect = (data: Buffer): void => {
      output = (output + data.toString('latin1')).slice(-4096);
    };
    child.stdout.on('data', collect);
    child.stderr.on('data', collect);
    const finish = (end: ProbeEnd): void => {
      timer.cancel();
      child.stdout.destroy();
      child.stderr.destroy();
      child.unref(); // one that not even SIGKILL ends must not hold us up
      resolve(end);
    };
    const timer = options.clock.setTimer(options.timeoutMs, () => {
      child.kill('SIGKILL');
      finish({ how: 'timeout', output });
    });
    child.on('error', (error) => finish({ how: 'exit', code: -1, output: error.message }));
    child.on('close', (code) => finish(code === null ? { how: 'signal', output } : { how: 'exit', code, output }));
  });
}

function probeArguments(accelerator: 'kvm' | 'tcg'): string[] {
  return [
    ...['-nodefaults', '-no-user-config', '-name', 'guest=berth-probe', ...sandbox],
    ...['-machine', 'pc,hpet=off', ...acceleratorArguments(accelerator), '-m', 'size=32M', '-display', 'none'],
    ...['-chardev', 'stdio,id=console,signal=off', '-serial', 'chardev:console'],
    ...['-device', 'isa-debug-exit,iobase=0xf4,iosize=0x04', '-no-reboot'],
    ...['-blockdev', JSON.stringify({ 'node-name': 'file', driver: 'file', filename: 'disk.raw', 'read-only': true })],
    ...['-blockdev', JSON.stringify({ 'node-name': 'disk', driver: 'raw', file: 'file', 'read-only': true })],
    ...['-device', 'virtio-blk-pci,drive=disk,bootindex=0'],
  ];
}

async function readRemembered(
  path: string,
): Promise<{ hostBootId: string; qemuVersion: string; works: boolean; reason: string } | null> {
  try {
    const value: unknown = JSON.parse(await readFile(path, 'utf8'));
    return Check(Remembered, value) ? value : null;
  } catch {
    return null; // not there, or not readable: probe again
  }
}
