// qemu-img, which reads files that strangers made: always with the formats told, never on the network, with bounded processor time and
// memory, and with nothing of the agent's environment. The only file that writes a command line for it.
//
//   prlimit --cpu --as --stack --core ─► unshare --net ─► setpriv --pdeathsig ─► qemu-img       (one process: each becomes the next)
//
// It ends with the agent: one that went on would hold the locks of a disk that the next agent is to start a guest with. That is asked for
// last, because the kernel forgets it when unshare takes new rights.

import type { Clock } from '../../base/clock.ts';
import { runTool, type ToolResult } from '../host/run-tool.ts';

export interface QemuImgCall {
  /** Default: that of PATH. */
  readonly program?: string;
  readonly arguments: readonly string[];
  readonly workingDirectory?: string;
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  readonly limits?: JailLimits;
}

export interface JailLimits {
  readonly cpuSeconds: number;
  readonly memoryBytes: number;
}

/** Overlays take milliseconds and 100 MiB of addresses; what needs more than this was made to (CVE-2015-5162). */
const defaultLimits: JailLimits = { cpuSeconds: 30, memoryBytes: 1024 ** 3 };

/**
 * qemu-img has up to 64 threads, and each would take addresses for its stack (8 MiB, or whatever the agent's own limit is) and for an arena of
 * malloc's (128 MiB): with a few at work at the same moment the limit was reached, and "qemu_thread_create: Resource temporarily unavailable" said.
 */
const threadStackBytes = 2 * 1024 ** 2;
const oneArena = { MALLOC_ARENA_MAX: '1' };

/** Root may leave the network as it is; others need a user namespace for it, which may be forbidden. */
const networkJails = [['--net'], ['--map-root-user', '--net']] as const;

/** As `runTool`; what went over a limit is `failed`, and its `output` says so. */
export async function runQemuImg(clock: Clock, call: QemuImgCall): Promise<ToolResult> {
  for (const jail of networkJails) {
    const result = await runLimited(clock, call, ['unshare', ...jail, '--']);
    if (result.ok || !/^unshare: (unshare failed|write failed|cannot)/m.test(result.output)) return result;
  }
  return runLimited(clock, call, []);
}

async function runLimited(clock: Clock, call: QemuImgCall, jail: readonly string[]): Promise<ToolResult> {
  const { program = 'qemu-img', limits = defaultLimits, arguments: words, ...rest } = call;
  const result = await runTool(clock, {
    ...rest,
    environment: oneArena,
    program: 'prlimit',
    arguments: [
      ...[`--cpu=${limits.cpuSeconds}`, `--as=${limits.memoryBytes}`, `--stack=${threadStackBytes}:`, '--core=0', '--'],
      ...jail,
      ...['setpriv', '--pdeathsig', 'KILL', '--', program, ...words],
    ],
  });
  if (result.ok || result.reason !== 'failed') return result;
  if (result.exitCode === 127 && result.output.includes('No such file or directory'))
    return { ...result, reason: 'missing' }; // as setpriv says it of the program that it was to become
  const over = overLimit(result, limits);
  return over === undefined ? result : { ...result, output: `${over}: the image may be made to do harm` };
}

/** What qemu-img cannot have had enough of, as its end tells. */
function overLimit(
  { killedBy, output }: Extract<ToolResult, { ok: false }>,
  { cpuSeconds, memoryBytes }: JailLimits,
): string | undefined {
  if (killedBy === 'SIGXCPU' || killedBy === 'SIGKILL') return `it needed more than ${cpuSeconds} s of processor time`;
  if (/cannot allocate memory|failed to allocate|memory exhausted|out of memory/i.test(output))
    return `it needed more than ${memoryBytes} bytes of memory`;
  return undefined;
}

/** A copy-on-write disk upon an image. */
export function overlayArguments(disk: {
  readonly image: { readonly path: string; readonly format: 'qcow2' | 'raw' };
  /** In the working directory. */
  readonly fileName: string;
  readonly sizeBytes: number;
}): string[] {
  const { image, fileName, sizeBytes } = disk;
  return ['create', '-q', '-f', 'qcow2', '-F', image.format, '-b', image.path, fileName, String(sizeBytes)];
}

/** A guest's disk, with all that it lies upon, as one file that stands for itself. `image`: what that is, whatever the disk says of it. */
export function flattenArguments({
  from,
  to,
  image,
}: {
  readonly from: string;
  readonly to: string;
  readonly image?: { readonly path: string; readonly format: 'qcow2' | 'raw' } | undefined;
}): string[] {
  const options = ['-o', 'compression_type=zstd'];
  if (image === undefined) return ['convert', '-q', '-c', '-f', 'qcow2', '-O', 'qcow2', ...options, from, to];
  const file = (filename: string) => ({ driver: 'file', filename });
  const source = { driver: 'qcow2', file: file(from), backing: { driver: image.format, file: file(image.path) } };
  return ['convert', '-q', '-c', '-O', 'qcow2', ...options, `json:${JSON.stringify(source)}`, to];
}
