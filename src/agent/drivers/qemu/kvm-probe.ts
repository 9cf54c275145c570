// Finds out whether KVM really runs a guest here, by running one: there are hosts where /dev/kvm opens, yet a guest hangs
// or aborts. Remembers the answer for this boot of the host and this QEMU.

import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Static, Type } from 'typebox';
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
  /** Images whose guests KVM could not run. */
  failed: Type.Optional(Type.Array(Type.String())),
  /** One more has failed since: the answer is not to be trusted, and found out again. */
  stale: Type.Optional(Type.Boolean()),
});
type Remembered = Static<typeof Remembered>;

/** Where an answer is kept, and what it holds for besides this boot of the host. */
interface Memory {
  readonly memoryPath: string;
  readonly qemuVersion: string;
}

/** As `probeAccelerator` for KVM, but once per boot of the host and version of QEMU, and again after a guest failed under it. */
export async function kvmWorks(options: ProbeOptions & Memory & { readonly kvmDevice: string }): Promise<ProbeResult> {
  const before = await readRemembered(options);
  if (before !== undefined && before.stale !== true) return asResult(before);
  const canOpen = await access(options.kvmDevice, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  // Not remembered: loading a module or a change of rights mends it without a reboot, and asking costs nothing.
  if (!canOpen) return { works: false, reason: `there is no usable ${options.kvmDevice}` };
  const result = await probeAccelerator('kvm', options);
  const failed = before?.failed === undefined ? {} : { failed: before.failed };
  const reason = result.works ? '' : `KVM opens, but ${result.reason}`;
  await remember(options, { works: result.works, reason, ...failed });
  return asResult({ works: result.works, reason });
}

/** KVM is given up with the second image whose guests it cannot run: one alone may be at fault itself. */
const failedImagesMax = 2;

/** Notes that KVM could not run a guest of `image`, though the probe ran. */
export async function kvmFailed(
  memory: Memory,
  guest: { readonly image: string; readonly reason: string },
): Promise<void> {
  const before = await readRemembered(memory);
  if (before !== undefined && !before.works) return;
  const failed = [...new Set([...(before?.failed ?? []), guest.image])];
  await remember(
    memory,
    failed.length < failedImagesMax
      ? { works: true, reason: '', failed, stale: true }
      : { works: false, reason: `guests of ${failed.length} images stopped under it: ${guest.reason}`, failed },
  );
}

const asResult = ({ works, reason }: Pick<Remembered, 'works' | 'reason'>): ProbeResult =>
  works ? { works } : { works, reason };

async function remember(
  { memoryPath, qemuVersion }: Memory,
  answer: Omit<Remembered, 'hostBootId' | 'qemuVersion'>,
): Promise<void> {
  await writeWhole(memoryPath, JSON.stringify({ hostBootId: await hostBootId(), qemuVersion, ...answer }));
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

/** Undefined: nothing is known of this boot and this QEMU. */
async function readRemembered({ memoryPath, qemuVersion }: Memory): Promise<Remembered | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(memoryPath, 'utf8'));
    if (!Check(Remembered, value) || value.qemuVersion !== qemuVersion) return undefined;
    return value.hostBootId === (await hostBootId()) ? value : undefined;
  } catch {
    return undefined; // not there, or not readable: probe again
  }
}
