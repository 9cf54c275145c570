// The QEMU driver: makes, runs and removes guests on this host. Every step is on disk before it is taken, so that an agent
// killed between any two of them finds its guests again; and no guest ever has two QEMUs.
//
//   create ─► preparing ─► running ─► stopped (asked for) ─► running (start)
//                │            ├─────► exited  (powered itself off)
//                ▼            └─────► failed  (QEMU died, guest panicked)
//              failed                                          any ─► remove ─► nothing

import { mkdir, readdir, realpath, rm } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import { join } from 'node:path';
import type { Accelerator, GuestPort, Phase } from '../../../api/agent-protocol.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import type { ImageCache, ImageProgress } from '../../images/image-cache.ts';
import { type Driver, DriverError, type Fingerprint, type Guest, type GuestSpec } from '../driver.ts';
import { guestFiles, guestUuid, qemuArguments } from './command-line.ts';
import {
  type ConsoleFollower,
  consoleSize,
  followConsole,
  punchHole,
  readConsole,
  trimmedStart,
} from './console-log.ts';
import { diskFull, makeDisk, makeGuestDirectory, makeSeed } from './disk.ts';
import { type GuestRecord, readGuestRecord, writeGuestRecord } from './guest-record.ts';
import { kvmWorks } from './kvm-probe.ts';
import { createPortBook, type PortRange, portInUse } from './ports.ts';
import {
  findGuestProcess,
  hostBootId,
  isAlive,
  isGuestProcess,
  killGuestProcess,
  type ProcessIdentity,
} from './processes.ts';
import { adoptRun, lastWords, launchRun, type Run, type RunEnd } from './run.ts';
import { runTool } from './run-tool.ts';

export interface QemuDriverOptions {
  /** Where guests live, one folder each. This driver's alone. */
  readonly directory: string;
  readonly images: ImageCache;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Where published ports listen. Default 127.0.0.1. */
  readonly bindAddress?: string;
  /** Where ports come from that nobody chose. Default 20000-29999. */
  readonly portRange?: PortRange;
  /** Default: KVM where a probe guest ran under it, else TCG. */
  readonly accelerator?: 'kvm' | 'tcg';
  readonly consoleBytesMax?: number;
  readonly consoleBytesKept?: number;
  readonly qemuProgram?: string;
  readonly qemuImgProgram?: string;
}

/** What the driver holds in memory of one guest. Without a record there is no guest (any more). */
interface Slot {
  readonly instanceId: string;
  record: GuestRecord | undefined;
  /** Operations on one guest follow one another; this is the end of the line. */
  line: Promise<void>;
  /** Writes of the record follow one another too. */
  writing: Promise<void>;
  run: Run | undefined;
  /** Resolves when the end of `run` is in the record. */
  settled: Promise<void>;
  console: ConsoleFollower | undefined;
  /** Abort the creates that are under way or in line. */
  readonly creating: Set<AbortController>;
  /** Abort the grace of the stops that are under way or in line. */
  readonly stopping: Set<AbortController>;
  progress: string | undefined;
  stderrTrimmedAtBytes: number;
}

const kvmProbeTimeoutMs = 5000;
const launchTimeoutMs = 30_000; // QEMU answers within 100 ms; this is for a host that swaps
const stderrBytesMax = 256 * 1024;
const portTriesMax = 5;

export function createQemuDriver(options: QemuDriverOptions): Driver {
  const { images, clock, log } = options;
  const bindAddress = options.bindAddress ?? '127.0.0.1';
  if (!isIPv4(bindAddress))
    throw new RangeError(`QEMU can publish ports on IPv4 addresses only, not on "${bindAddress}"`);
  const qemu = options.qemuProgram ?? 'qemu-system-x86_64';
  const qemuImg = options.qemuImgProgram ?? 'qemu-img';
  const consoleLimits = {
    maxBytes: options.consoleBytesMax ?? 4 * 1024 * 1024,
    keptBytes: options.consoleBytesKept ?? 2 * 1024 * 1024,
  };
  const ports = createPortBook({ bindAddress, range: options.portRange ?? { first: 20_000, last: 29_999 } });
  const slots = new Map<string, Slot>();
  const listeners = new Set<(instanceId: string) => void>();
  let closed = false;
  let fingerprinting: Promise<Fingerprint> | undefined;
  let rooting: Promise<string> | undefined;

  // ── the host ────────────────────────────────────────────────────────────────────────────────────────────────────

  const fingerprint = (): Promise<Fingerprint> => {
    fingerprinting ??= lookAtHost().finally(() => {
      fingerprinting = undefined;
    });
    return fingerprinting;
  };

  const lookAtHost = async (): Promise<Fingerprint> => {
    try {
      const version = await runTool(clock, { program: qemu, arguments: ['--version'], timeoutMs: 10_000 });
      if (!version.ok) return unavailable(qemu, 'qemu-system-x86', version);
      const image = await runTool(clock, { program: qemuImg, arguments: ['--version'], timeoutMs: 10_000 });
      if (!image.ok) return unavailable(qemuImg, 'qemu-utils', image);
      const number = /version (\S+)/.exec(version.output)?.[1] ?? 'unknown';
      const seen = { available: true, version: number } as const;
      if (options.accelerator !== undefined) return { ...seen, accelerator: options.accelerator };
      const kvm = await kvmWorks({
        program: qemu,
        clock,
        timeoutMs: kvmProbeTimeoutMs,
        memoryPath: join(await root(), 'kvm-probe.json'),
        qemuVersion: version.output,
      });
      if (kvm.works) return { ...seen, accelerator: 'kvm' };
      return { ...seen, accelerator: 'tcg', reason: `${kvm.reason}; guests run under TCG, ten times slower` };
    } catch (error) {
      return { available: false, reason: `cannot look at QEMU on this host: ${describeError(error)}` };
    }
  };

  const chosenAccelerator = async (): Promise<Accelerator> => {
    if (options.accelerator !== undefined) return options.accelerator;
    accelerating ??= fingerprint();
    const seen = await accelerating;
    if (seen.accelerator !== undefined) return seen.accelerator;
    accelerating = undefined; // QEMU may be installed later
    throw new DriverError('HypervisorFailed', seen.reason ?? 'QEMU is not usable on this host');
  };
  let accelerating: Promise<Fingerprint> | undefined;

  /** The guests' folder, without symbolic links, as the kernel shows it for a process's working directory. */
  const root = (): Promise<string> => {
    rooting ??= mkdir(options.directory, { recursive: true, mode: 0o700 })
      .then(() => realpath(options.directory))
      .catch((error: unknown) => {
        rooting = undefined;
        throw error;
      });
    return rooting;
  };
  const directoryOf = async (instanceId: string): Promise<string> => join(await root(), instanceId);

  // ── one guest at a time ─────────────────────────────────────────────────────────────────────────────────────────

  const slotOf = (instanceId: string): Slot => {
    let slot = slots.get(instanceId);
    if (slot === undefined) {
      slot = emptySlot(instanceId);
      slots.set(instanceId, slot);
    }
    return slot;
  };

  const inLine = <Result>(slot: Slot, act: () => Promise<Result>): Promise<Result> => {
    const result = slot.line.then(() => {
      if (closed) throw new DriverError('Aborted', `nothing more is done to ${slot.instanceId}: the driver is closed`);
      return act();
    });
    const line = result.then(
      () => {},
      () => {}, // whoever asked is told; whoever comes next does not care
    );
    slot.line = line;
    void line.then(() => {
      if (slot.record === undefined && slot.line === line) slots.delete(slot.instanceId);
    });
    return result;
  };

  const notify = (instanceId: string): void => {
    for (const listener of listeners) listener(instanceId);
  };

  /** Changes what is known of a guest, for all to see; resolves when it is on disk. */
  const save = async (slot: Slot, change: Partial<GuestRecord>): Promise<void> => {
    if (slot.record === undefined) return;
    slot.record = { ...slot.record, ...change };
    notify(slot.instanceId);
    const write = slot.writing.then(async () => {
      if (slot.record !== undefined) await writeGuestRecord(await directoryOf(slot.instanceId), slot.record);
    });
    slot.writing = write.catch(() => {}); // whoever awaits `write` is told
    await write;
  };

  /** For changes that nobody waits for, and that the next agent can find out again. */
  const saveLater = (slot: Slot, change: Partial<GuestRecord>): void => {
    save(slot, change).catch((error: unknown) =>
      log.warn('cannot write the record of a guest', { instance: slot.instanceId, error: describeError(error) }),
    );
  };

  const setProgress = (slot: Slot, progress: string | undefined): void => {
    if (slot.progress === progress) return;
    slot.progress = progress;
    notify(slot.instanceId);
  };

  const runOptions = async (slot: Slot, uuid: string) => ({
    directory: await directoryOf(slot.instanceId),
    uuid,
    clock,
    prng: options.prng,
    log: log.with({ instance: slot.instanceId }),
  });

  // ── a running guest ─────────────────────────────────────────────────────────────────────────────────────────────

  const attach = async (slot: Slot, run: Run): Promise<void> => {
    slot.run = run;
    await follow(slot);
    slot.settled = run.ended.then((end) => settle(slot, run, end));
    slot.settled.catch((error: unknown) =>
      log.error('cannot note the end of a guest', { instance: slot.instanceId, error: describeError(error) }),
    );
  };

  const follow = async (slot: Slot): Promise<void> => {
    const record = slot.record;
    if (record === undefined || closed) return;
    slot.console?.stop();
    const directory = await directoryOf(slot.instanceId);
    slot.console = followConsole({
      path: join(directory, guestFiles.console),
      clock,
      fromOffset: record.bootOffset,
      marks: { ready: record.ready, ...(record.address === undefined ? {} : { address: record.address }) },
      onMarks: (marks) => {
        const change: Partial<GuestRecord> = { ...marks };
        if (marks.ready && slot.record?.ready === false)
          saveLater(slot, { ...change, phases: withBoot(slot.record, clock.nowMs()) });
        else saveLater(slot, change);
      },
      onSize: (sizeBytes) => trim(slot, directory, sizeBytes),
    });
  };

  const trim = (slot: Slot, directory: string, sizeBytes: number): void => {
    if (slot.record === undefined) return;
    const start = trimmedStart({ start: slot.record.consoleStart, sizeBytes }, consoleLimits);
    if (start > slot.record.consoleStart) {
      // The record first: a reader must not take the hole for what the guest wrote.
      save(slot, { consoleStart: start })
        .then(() => punchHole(clock, join(directory, guestFiles.console), start))
        .then((hole) => {
          if (!hole.ok)
            log.warn('cannot drop the start of a console log', { instance: slot.instanceId, error: hole.output });
        })
        .catch((error: unknown) =>
          log.warn('cannot trim a console log', { instance: slot.instanceId, error: describeError(error) }),
        );
    }
    trimStderr(slot, directory).catch((error: unknown) =>
      log.warn('cannot trim what QEMU said', { instance: slot.instanceId, error: describeError(error) }),
    );
  };

  const trimStderr = async (slot: Slot, directory: string): Promise<void> => {
    const path = join(directory, guestFiles.stderr);
    const size = await consoleSize(path);
    if (size - slot.stderrTrimmedAtBytes <= stderrBytesMax) return;
    slot.stderrTrimmedAtBytes = size;
    await punchHole(clock, path, size - 16 * 1024);
  };

  /** Writes down how a run ended. */
  const settle = async (slot: Slot, run: Run, end: RunEnd): Promise<void> => {
    if (slot.run !== run || end.cause === 'detached') return;
    const directory = await directoryOf(slot.instanceId);
    await slot.console?.check().catch(() => {}); // the last lines may say that the boot was over
    slot.console?.stop();
    slot.console = undefined;
    slot.run = undefined;
    if (slot.record === undefined || !slot.record.created) return; // create and remove say themselves what became of it
    const verdict = await judge(slot.record, end, directory);
    log.info('a guest ended', {
      instance: slot.instanceId,
      state: verdict.state,
      reason: verdict.reason?.code,
      detail: end.detail,
    });
    await save(slot, verdict);
  };

  const judge = async (
    record: GuestRecord,
    end: RunEnd,
    directory: string,
  ): Promise<Pick<GuestRecord, 'state' | 'reason'>> => {
    if (record.stopRequested) return { state: 'stopped' };
    if (end.cause === 'guest-shutdown') {
      return { state: 'exited', reason: { code: 'GuestShutdown', message: 'the guest powered itself off' } };
    }
    if (end.cause === 'guest-panic') {
      return {
        state: 'failed',
        reason: { code: 'GuestPanicked', message: 'the kernel of the guest panicked; its console says why' },
      };
    }
    if (record.hostBootId !== undefined && record.hostBootId !== (await hostBootId())) {
      return { state: 'failed', reason: { code: 'HostRestarted', message: 'the host restarted while the guest ran' } };
    }
    const words = await lastWords(directory);
    return {
      state: 'failed',
      reason: { code: 'HypervisorExited', message: `${end.detail}${words === '' ? '' : `: ${words}`}` },
    };
  };

  /** Starts QEMU for a guest whose files are there. Ports that the driver chose are chosen again when someone was faster. */
  const launch = async (slot: Slot, wanted: readonly GuestPort[], signal: AbortSignal): Promise<void> => {
    for (let tries = 1; ; tries++) {
      try {
        return await launchOnce(slot, signal);
      } catch (error) {
        const record = slot.record;
        const isOurChoice = record?.ports.some(
          (port, i) => wanted[i]?.hostPort === 0 && describeError(error).includes(`:${port.hostPort}/`),
        );
        if (
          !(error instanceof DriverError) ||
          error.code !== 'PortInUse' ||
          isOurChoice !== true ||
          tries === portTriesMax
        )
          throw error;
        await save(slot, { ports: await ports.reserve(slot.instanceId, wanted) });
      }
    }
  };

  const launchOnce = async (slot: Slot, signal: AbortSignal): Promise<void> => {
    if (slot.record === undefined) throw noSuchGuest('start', slot.instanceId);
    const directory = await directoryOf(slot.instanceId);
    const accelerator = await chosenAccelerator();
    const startedAtMs = clock.nowMs();
    const orphan = await findGuestProcess(directory, slot.record.uuid); // of an agent that died before it wrote the pid
    if (orphan === null) {
      await save(slot, {
        accelerator,
        startedAtMs,
        launching: true,
        process: undefined,
        hostBootId: await hostBootId(),
        bootOffset: await consoleSize(join(directory, guestFiles.console)),
        ready: false,
        address: undefined,
        stopRequested: false,
      });
    }
    const record = slot.record;
    throwIfAborted(signal, slot.instanceId);
    const from = await runOptions(slot, record.uuid);
    const run =
      orphan === null
        ? await launchRun(from, {
            program: qemu,
            arguments: qemuArguments(record, { accelerator, bindAddress }),
            onProcess: (process) => save(slot, { process }),
          })
        : adoptRun(from, orphan);
    const giveUp = (): void => {
      if (closed) return run.detach(); // the next agent finds it
      run
        .end()
        .catch((error: unknown) =>
          log.error('QEMU does not end', { instance: slot.instanceId, error: describeError(error) }),
        );
    };
    signal.addEventListener('abort', giveUp, { once: true });
    try {
      const limit = new AbortController();
      const end = await Promise.race([
        run.connected.then(() => 'connected' as const),
        sleep(clock, launchTimeoutMs, limit.signal).then(() => 'timeout' as const),
      ]);
      limit.abort();
      if (end === 'timeout') {
        throw new DriverError(
          'HypervisorFailed',
          `QEMU for ${slot.instanceId} did not answer within ${launchTimeoutMs} ms`,
        );
      }
      throwIfAborted(signal, slot.instanceId);
      if (!(await isAlive(run.process))) throw await launchError(slot, record, await run.ended, directory);
      await save(slot, {
        process: run.process,
        launching: false,
        created: true,
        state: 'running',
        reason: undefined,
        stopRequested: false,
        phases: [
          ...record.phases.filter((phase) => phase.name !== 'start' && phase.name !== 'boot'),
          phase('start', startedAtMs, clock.nowMs()),
        ],
      });
      await attach(slot, run);
    } catch (error) {
      if (!closed) await run.end();
      throw error;
    } finally {
      signal.removeEventListener('abort', giveUp);
    }
  };

  const launchError = async (slot: Slot, record: GuestRecord, end: RunEnd, directory: string): Promise<DriverError> => {
    const words = await lastWords(directory);
    const forward = /host forwarding rule '(tcp|udp):[^']*?:(\d+)-/.exec(words);
    const port = record.ports.find((each) => each.protocol === forward?.[1] && String(each.hostPort) === forward?.[2]);
    if (port !== undefined) return portInUse(slot.instanceId, port, bindAddress);
    if (/No space left/i.test(words)) return diskFull(`cannot start ${slot.instanceId}`, directory);
    return new DriverError('HypervisorFailed', `cannot start ${slot.instanceId}: ${end.detail}: ${words}`);
  };

  // ── create ──────────────────────────────────────────────────────────────────────────────────────────────────────

  const create = (spec: GuestSpec, signal: AbortSignal): Promise<void> => {
    checkId(spec.instanceId);
    const slot = slotOf(spec.instanceId);
    const creating = new AbortController();
    slot.creating.add(creating);
    const either = AbortSignal.any([signal, creating.signal]);
    return inLine(slot, async () => {
      throwIfAborted(either, spec.instanceId);
      if (slot.record !== undefined) {
        if (slot.record.incarnation > spec.incarnation && !slot.record.removing) {
          throw new DriverError(
            'Internal',
            `cannot create incarnation ${spec.incarnation} of ${spec.instanceId}: incarnation ${slot.record.incarnation} is here already`,
          );
        }
        if (slot.record.incarnation !== spec.incarnation || slot.record.removing) await removeNow(slot);
        else if (slot.record.created) return; // create twice is once, also when the guest has ended since
      }
      try {
        await build(slot, spec, either);
      } catch (error) {
        throw await giveUpCreating(slot, spec, either, error);
      } finally {
        setProgress(slot, undefined);
      }
    }).finally(() => slot.creating.delete(creating));
  };

  const build = async (slot: Slot, spec: GuestSpec, signal: AbortSignal): Promise<void> => {
    const directory = await directoryOf(spec.instanceId);
    const uuid = guestUuid(spec.instanceId, spec.incarnation);
    slot.record = newRecord(spec, uuid);
    await makeGuestDirectory(directory);
    await save(slot, {});
    if (spec.image.architecture !== 'amd64') {
      throw new DriverError(
        'ImageInvalid',
        `cannot run image "${spec.imageName}": it is for ${spec.image.architecture}, and this driver runs amd64`,
      );
    }
    await save(slot, { ports: await ports.reserve(spec.instanceId, spec.ports) });

    const timed = async <Result>(name: string, progress: string, act: () => Promise<Result>): Promise<Result> => {
      setProgress(slot, progress);
      const startedAtMs = clock.nowMs();
      const result = await act();
      throwIfAborted(signal, spec.instanceId);
      await save(slot, { phases: [...(slot.record?.phases ?? []), phase(name, startedAtMs, clock.nowMs())] });
      return result;
    };

    const image = await timed('pull', `pulling ${spec.imageName}`, () =>
      images.ensure(spec.imageName, spec.image, {
        signal,
        onProgress: (progress) => setProgress(slot, pullProgress(spec.imageName, progress)),
      }),
    );
    await save(slot, { imageDigest: image.digest });
    await timed('clone', 'making the disk', () =>
      makeDisk({ clock, program: qemuImg, directory, image, spec, signal }),
    );
    if (spec.image.nocloud) await timed('seed', 'writing the seed', () => makeSeed(directory, spec, uuid));
    setProgress(slot, 'starting');
    await launch(slot, spec.ports, signal);
  };

  /** After a failed create nothing runs and the guest says why; what can be used again by a next try is kept. */
  const giveUpCreating = async (
    slot: Slot,
    spec: GuestSpec,
    signal: AbortSignal,
    error: unknown,
  ): Promise<DriverError> => {
    const told = signal.aborted
      ? new DriverError('Aborted', `the creation of ${spec.instanceId} was given up`, error)
      : asDriverError(error, `cannot create ${spec.instanceId}`, options.directory);
    if (closed) return told; // as if the agent had died here: the next one goes on
    ports.release(slot.instanceId);
    log.warn('cannot create a guest', { instance: slot.instanceId, code: told.code, error: told.message });
    await save(slot, { state: 'failed', reason: { code: told.code, message: told.message } }).catch(
      (failure: unknown) =>
        log.warn('cannot write the record of a guest', { instance: slot.instanceId, error: describeError(failure) }),
    );
    return told;
  };

  // ── start, stop, remove ─────────────────────────────────────────────────────────────────────────────────────────

  const start = (instanceId: string): Promise<void> => {
    checkId(instanceId);
    const slot = slotOf(instanceId);
    return inLine(slot, async () => {
      const record = slot.record;
      if (record === undefined) throw noSuchGuest('start', instanceId);
      if (slot.run !== undefined) return;
      if (!record.created || record.removing) {
        throw new DriverError('Internal', `cannot start ${instanceId}: it was never made whole; create it again`);
      }
      try {
        await launch(slot, record.ports, new AbortController().signal);
      } catch (error) {
        const told = asDriverError(error, `cannot start ${instanceId}`, options.directory);
        saveLater(slot, { state: 'failed', reason: { code: told.code, message: told.message } });
        throw told;
      }
    });
  };

  const stop = async (instanceId: string, graceMs: number): Promise<void> => {
    checkId(instanceId);
    const slot = slots.get(instanceId);
    if (slot === undefined) return;
    const impatience = new AbortController();
    slot.stopping.add(impatience);
    // A stop under way is not waited for longer than this caller wants to wait.
    const timer = clock.setTimer(graceMs, () => abortAll(slot.stopping));
    try {
      await inLine(slot, () => stopNow(slot, graceMs, impatience.signal));
    } finally {
      timer.cancel();
      slot.stopping.delete(impatience);
    }
  };

  const stopNow = async (slot: Slot, graceMs: number, impatience: AbortSignal): Promise<void> => {
    const { run } = slot;
    if (run === undefined) return;
    await save(slot, { stopRequested: true });
    if (graceMs > 0 && !impatience.aborted) {
      await run.powerDown().catch((error: unknown) =>
        log.warn('cannot press the power button of a guest', {
          instance: slot.instanceId,
          error: describeError(error),
        }),
      );
      const ended = new AbortController();
      await Promise.race([run.ended, sleep(clock, graceMs, AbortSignal.any([impatience, ended.signal]))]);
      ended.abort();
    }
    if (closed) throw new DriverError('Aborted', `the stop of ${slot.instanceId} was given up: the driver is closed`);
    if (slot.run === run) await run.end();
    await slot.settled;
  };

  const remove = async (instanceId: string): Promise<void> => {
    checkId(instanceId);
    const slot = slotOf(instanceId);
    abortAll(slot.creating);
    abortAll(slot.stopping);
    await inLine(slot, () => removeNow(slot));
  };

  const removeNow = async (slot: Slot): Promise<void> => {
    const directory = await directoryOf(slot.instanceId);
    if (slot.record !== undefined) {
      slot.record = { ...slot.record, removing: true };
      await save(slot, {}).catch((error: unknown) =>
        log.warn('cannot write the record of a guest', { instance: slot.instanceId, error: describeError(error) }),
      ); // a full disk must not keep anyone from making room
    }
    await slot.run?.end();
    await slot.settled.catch(() => {}); // was logged, and matters no more
    for (const process of await processesIn(directory, slot.record)) await killAndWait(process, directory);
    slot.console?.stop();
    slot.console = undefined;
    slot.run = undefined;
    const hadRecord = slot.record !== undefined;
    slot.record = undefined; // from here on nothing writes into the folder
    await slot.writing;
    // The record goes last: whoever dies here finds the guest again and removes the rest.
    for (const name of await readdir(directory).catch(() => [])) {
      if (name !== 'guest.json') await rm(join(directory, name), { recursive: true, force: true });
    }
    await rm(directory, { recursive: true, force: true });
    ports.release(slot.instanceId);
    slot.settled = Promise.resolve();
    slot.stderrTrimmedAtBytes = 0;
    if (hadRecord) notify(slot.instanceId);
  };

  /** Processes of this guest that no run looks after: of an agent that died, or of a record that was lost. */
  const processesIn = async (directory: string, record: GuestRecord | undefined): Promise<ProcessIdentity[]> => {
    if (record === undefined) return [];
    const process = await findGuestProcess(directory, record.uuid === damagedUuid ? undefined : record.uuid);
    return process === null ? [] : [process];
  };

  const killAndWait = async (process: ProcessIdentity, directory: string): Promise<void> => {
    await killGuestProcess(process, { directory });
    while (await isAlive(process)) await sleep(clock, 20);
  };

  // ── after a restart of the agent ────────────────────────────────────────────────────────────────────────────────

  const recover = async (): Promise<void> => {
    const names = (await readdir(await root())).filter((name) => idPattern.test(name)).sort();
    await Promise.all(
      names.map((instanceId) => {
        const slot = slotOf(instanceId);
        return inLine(slot, () => recoverGuest(slot)).catch((error: unknown) => {
          // One guest's trouble must not hide the others.
          log.error('cannot recover a guest', { instance: instanceId, error: describeError(error) });
          slot.record ??= damagedRecord(instanceId);
        });
      }),
    );
  };

  const recoverGuest = async (slot: Slot): Promise<void> => {
    const directory = await directoryOf(slot.instanceId);
    const read = await readGuestRecord(directory);
    if (read.found === 'nothing') return void (await rm(directory, { recursive: true, force: true })); // nothing ran before there was a record
    if (read.found === 'damage') {
      slot.record = damagedRecord(slot.instanceId);
      log.error('the record of a guest is damaged; remove the guest', { instance: slot.instanceId, directory });
      return notify(slot.instanceId);
    }
    const { record } = read;
    slot.record = record;
    if (record.created) ports.adopt(slot.instanceId, record.ports);
    const hint = record.process;
    const where = { directory, uuid: record.uuid };
    const known = hint !== undefined && (await isGuestProcess(hint, where)) ? hint : null;
    const found = known === null && record.launching ? await findGuestProcess(directory, record.uuid) : known;
    if (found !== null) await adopt(slot, record, found);
    else if (record.created && record.state === 'running') {
      const end: RunEnd = {
        cause: 'other',
        detail: `QEMU (pid ${hint?.pid ?? 'unknown'}) ended while the agent was away`,
      };
      await save(slot, await judge(record, end, directory));
    }
    notify(slot.instanceId);
  };

  const adopt = async (slot: Slot, record: GuestRecord, found: ProcessIdentity): Promise<void> => {
    ports.adopt(slot.instanceId, record.ports);
    log.info('adopting a guest', { instance: slot.instanceId, pid: found.pid });
    await save(slot, { process: found, launching: false, created: true, state: 'running', reason: undefined });
    const run = adoptRun(await runOptions(slot, record.uuid), found);
    await attach(slot, run);
    const limit = new AbortController();
    await Promise.race([run.connected, sleep(clock, 3000, limit.signal)]); // one that hangs is watched all the same
    limit.abort();
    await slot.console?.check().catch(() => {}); // no console yet: it is looked at again
  };

  // ── looking ─────────────────────────────────────────────────────────────────────────────────────────────────────

  return {
    name: 'qemu',
    fingerprint,
    recover,
    create,
    start,
    stop,
    remove,
    guests: () =>
      [...slots.values()].flatMap((slot) => (slot.record === undefined ? [] : [asGuest(slot.record, slot.progress)])),
    watch(listener, signal) {
      if (signal.aborted) return;
      const each = (instanceId: string): void => listener(instanceId); // its own, should one function watch twice
      listeners.add(each);
      signal.addEventListener('abort', () => listeners.delete(each), { once: true });
    },
    async readLog(instanceId, offset, limit) {
      checkId(instanceId);
      const record = slots.get(instanceId)?.record;
      if (record === undefined) throw noSuchGuest('read the log of', instanceId);
      const path = join(await directoryOf(instanceId), guestFiles.console);
      return readConsole(path, { start: record.consoleStart, offset, limit });
    },
    async close() {
      closed = true;
      listeners.clear();
      for (const slot of slots.values()) {
        abortAll(slot.creating);
        abortAll(slot.stopping);
        slot.console?.stop();
        slot.run?.detach();
      }
      await Promise.all([...slots.values()].flatMap((slot) => [slot.line, slot.writing]));
    },
  };
}

const idPattern = /^[a-z]+_[0-9a-z]{26}$/;

/** Ids become names of folders. */
function checkId(instanceId: string): void {
  if (!idPattern.test(instanceId)) throw new DriverError('NoSuchGuest', `"${instanceId}" is not an instance id`);
}

function abortAll(controllers: Iterable<AbortController>): void {
  for (const controller of controllers) controller.abort();
}

function emptySlot(instanceId: string): Slot {
  return {
    instanceId,
    record: undefined,
    line: Promise.resolve(),
    writing: Promise.resolve(),
    run: undefined,
    settled: Promise.resolve(),
    console: undefined,
    creating: new Set(),
    stopping: new Set(),
    progress: undefined,
    stderrTrimmedAtBytes: 0,
  };
}

function newRecord(spec: GuestSpec, uuid: string): GuestRecord {
  return {
    version: 1,
    instanceId: spec.instanceId,
    incarnation: spec.incarnation,
    uuid,
    state: 'preparing',
    created: false,
    removing: false,
    launching: false,
    stopRequested: false,
    cpus: spec.cpus,
    memoryMiB: spec.memoryMiB,
    seeded: spec.image.nocloud,
    ports: [],
    bootOffset: 0,
    consoleStart: 0,
    ready: false,
    phases: [],
  };
}

const damagedUuid = '';

function damagedRecord(instanceId: string): GuestRecord {
  return {
    version: 1,
    instanceId,
    incarnation: 0,
    uuid: damagedUuid,
    state: 'failed',
    reason: {
      code: 'RecordDamaged',
      message: 'what the host knew of this guest cannot be read; remove it or create it anew',
    },
    created: true,
    removing: true,
    launching: false,
    stopRequested: false,
    cpus: 1,
    memoryMiB: 1,
    seeded: false,
    ports: [],
    bootOffset: 0,
    consoleStart: 0,
    ready: false,
    phases: [],
  };
}

function asGuest(record: GuestRecord, progress: string | undefined): Guest {
  return {
    instanceId: record.instanceId,
    incarnation: record.incarnation,
    state: record.state,
    ready: record.ready,
    ports: record.ports,
    phases: record.phases,
    ...(record.reason === undefined ? {} : { reason: record.reason }),
    ...(record.address === undefined ? {} : { address: record.address }),
    ...(record.accelerator === undefined ? {} : { accelerator: record.accelerator }),
    ...(record.imageDigest === undefined ? {} : { imageDigest: record.imageDigest }),
    ...(record.startedAtMs === undefined ? {} : { startedAtMs: record.startedAtMs }),
    ...(progress === undefined || record.state !== 'preparing' ? {} : { progress }),
  };
}

const phase = (name: string, startedAtMs: number, endedAtMs: number): Phase => ({
  name,
  startedAtMs,
  durationMs: Math.max(0, endedAtMs - startedAtMs), // wall time may jump back
});

/** The boot lasts from QEMU's start until the guest says that it is over. */
function withBoot(record: GuestRecord, nowMs: number): Phase[] {
  const before = record.phases.filter((each) => each.name !== 'boot');
  const startPhase = before.find((each) => each.name === 'start');
  const startedAtMs =
    startPhase === undefined ? (record.startedAtMs ?? nowMs) : startPhase.startedAtMs + startPhase.durationMs;
  return [...before, phase('boot', startedAtMs, nowMs)];
}

function pullProgress(imageName: string, progress: ImageProgress): string {
  const verb = { downloading: 'pulling', unpacking: 'unpacking', checking: 'checking' }[progress.stage];
  const { doneBytes, totalBytes } = progress;
  const amount =
    totalBytes === undefined || totalBytes === 0
      ? `${Math.floor(doneBytes / 1_000_000)} MB`
      : `${Math.floor((100 * doneBytes) / totalBytes)} %`;
  return `${verb} ${imageName}: ${amount}`;
}

function unavailable(
  program: string,
  packageName: string,
  result: { readonly reason: string; readonly output: string },
): Fingerprint {
  return {
    available: false,
    reason:
      result.reason === 'missing'
        ? `${program} is not installed; install the package ${packageName}`
        : `${program} --version fails (${result.reason}): ${result.output}`,
  };
}

const noSuchGuest = (verb: string, instanceId: string): DriverError =>
  new DriverError('NoSuchGuest', `cannot ${verb} ${instanceId}: there is no such guest on this host`);

function throwIfAborted(signal: AbortSignal, instanceId: string): void {
  if (signal.aborted) throw new DriverError('Aborted', `the creation of ${instanceId} was given up`);
}

function asDriverError(error: unknown, what: string, directory: string): DriverError {
  if (error instanceof DriverError) return error;
  const code = error instanceof Error && 'code' in error ? error.code : undefined;
  if (code === 'ENOSPC' || code === 'EDQUOT') return diskFull(what, directory);
  return new DriverError('Internal', `${what}: ${describeError(error)}`, error);
}
