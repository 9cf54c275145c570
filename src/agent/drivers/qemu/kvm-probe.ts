// Finds out whether KVM really runs a guest here, by running one: there are hosts where /dev/kvm opens, yet a guest hangs
// or aborts, and others that run a boot sector and stop a kernel. Remembers the answer for this boot of the host and this QEMU.

import { spawn } from 'node:child_process';
import { constants } from 'node:fs';
import { access, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Static, Type } from 'typebox';
import { Check } from 'typebox/value';
import type { Clock, Timer } from '../../../base/clock.ts';
import { bootDisk } from './boot-sector.ts';
import { acceleratorArguments, sandbox } from './command-line.ts';
import { complaints } from './complaints.ts';
import { writeWhole } from '../../host/write-whole.ts';
import { hostBootId } from '../guest-life/host-boot.ts';
import { toolEnvironment } from '../../host/run-tool.ts';

export interface ProbeOptions {
  readonly program: string;
  readonly clock: Clock;
  /** A sound KVM needs well under one second. */
  readonly timeoutMs: number;
  /** A guest of it must write a line to its console. Absent: a boot sector must. */
  readonly image?: ProbeImage | undefined;
}

/** A disk with a boot loader and a kernel, qcow2. */
export interface ProbeImage {
  readonly path: string;
  readonly digest: string;
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
  /** The digest of the image that it was found with. Absent: a boot sector. */
  image: Type.Optional(Type.String()),
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
  if (before !== undefined && !(before.works && isWeak(before, options.image))) return asResult(before);
  const canOpen = await access(options.kvmDevice, constants.R_OK | constants.W_OK).then(
    () => true,
    () => false,
  );
  // Not remembered: loading a module or a change of rights mends it without a reboot, and asking costs nothing.
  if (!canOpen) return { works: false, reason: `there is no usable ${options.kvmDevice}` };
  const result = await probeAccelerator('kvm', options);
  const failed = before?.failed === undefined ? {} : { failed: before.failed };
  const image = options.image === undefined ? {} : { image: options.image.digest };
  const reason = result.works ? '' : `KVM opens, but ${result.reason}`;
  await remember(options, { works: result.works, reason, ...image, ...failed });
  return asResult({ works: result.works, reason });
}

/** A guest failed since, or there is a kernel now that could tell more than the boot sector did. */
function isWeak(answer: Remembered, image: ProbeImage | undefined): boolean {
  return answer.stale === true || (image !== undefined && answer.image === undefined);
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

/** Runs a guest: of the image, until it writes a line, or of one sector that writes a mark and ends QEMU with a code of its own. */
export async function probeAccelerator(accelerator: 'kvm' | 'tcg', options: ProbeOptions): Promise<ProbeResult> {
  const directory = await mkdtemp(join(tmpdir(), 'berth-probe-'));
  try {
    if (options.image === undefined) await writeBootSector(join(directory, 'disk.raw'));
    const end = await runProbe(directory, accelerator, options);
    if (end.how === 'line') return { works: true };
    if (end.how === 'timeout') return { works: false, reason: 'a probe guest hung under it' };
    if (end.how === 'exit' && end.code === 2 * exitValue + 1 && end.output.includes(mark)) return { works: true };
    const words = complaints(end.output).slice(0, 200);
    const how = end.how === 'exit' ? `exit code ${end.code}` : end.how;
    return { works: false, reason: `a probe guest failed under it (${how}): ${words}` };
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}

type ProbeHow =
  | { readonly how: 'exit'; readonly code: number }
  | { readonly how: 'line' | 'internal error' | 'timeout' | 'signal' };
type ProbeEnd = ProbeHow & { readonly output: string };

async function writeBootSector(path: string): Promise<void> {
  const disk = bootDisk([
    { do: 'print', text: `${mark}\n` },
    { do: 'debug-exit', value: exitValue },
  ]);
  await writeFile(path, disk, { mode: 0o600 });
}

/** QEMU stays when KVM failed, and has the rest of what it says to say. */
const lastWordsMs = 200;

function runProbe(directory: string, accelerator: 'kvm' | 'tcg', options: ProbeOptions): Promise<ProbeEnd> {
  const { clock, image } = options;
  return new Promise((resolve) => {
    const child = spawn(options.program, probeArguments(accelerator, image), {
      cwd: directory,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { ...toolEnvironment },
    });
    const said = { console: '', stderr: '' };
    let dying: Timer | undefined;
    const finish = (end: ProbeHow): void => {
      timer.cancel();
      dying?.cancel();
      child.kill('SIGKILL'); // harmless when it has ended
      child.stdout.destroy();
      child.stderr.destroy();
      child.unref(); // one that not even SIGKILL ends must not hold us up
      resolve({ ...end, output: `${said.console}\n${said.stderr}` });
    };
    child.stdout.on('data', (data: Buffer) => {
      said.console = (said.console + data.toString('latin1')).slice(-4096);
      if (image !== undefined && /\S[^\n]*\n/.test(said.console)) finish({ how: 'line' });
    });
    child.stderr.on('data', (data: Buffer) => {
      said.stderr = (said.stderr + data.toString('latin1')).slice(-4096);
      if (said.stderr.includes('KVM internal error'))
        dying ??= clock.setTimer(lastWordsMs, () => finish({ how: 'internal error' }));
    });
    const timer = clock.setTimer(options.timeoutMs, () => finish({ how: 'timeout' }));
    child.on('error', (error) => {
      said.stderr += error.message;
      finish({ how: 'exit', code: -1 });
    });
    child.on('close', (code) => finish(code === null ? { how: 'signal' } : { how: 'exit', code }));
  });
}

/** `image`: its kernel finds a drive at once, and needs no network. */
function probeArguments(accelerator: 'kvm' | 'tcg', image: ProbeImage | undefined): string[] {
  const [filename, driver, memory] = image === undefined ? ['disk.raw', 'raw', 32] : [image.path, 'qcow2', 128];
  const disk = { 'node-name': 'disk', driver, file: 'file', 'read-only': true };
  return [
    ...['-nodefaults', '-no-user-config', '-name', 'guest=berth-probe', ...sandbox],
    ...['-machine', 'pc,hpet=off', ...acceleratorArguments(accelerator), '-m', `size=${memory}M`, '-display', 'none'],
    ...['-chardev', 'stdio,id=console,signal=off', '-serial', 'chardev:console'],
    ...['-device', 'isa-debug-exit,iobase=0xf4,iosize=0x04', '-no-reboot'],
    ...['-blockdev', JSON.stringify({ 'node-name': 'file', driver: 'file', filename, 'read-only': true })],
    // Nothing that the image says to lie upon is opened.
    ...['-blockdev', JSON.stringify(image === undefined ? disk : { ...disk, backing: null })],
    ...['-device', 'virtio-blk-pci,drive=disk,bootindex=0'],
    ...(image === undefined ? [] : ['-device', 'ide-cd,bus=ide.1']),
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
