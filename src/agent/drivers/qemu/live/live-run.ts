// Moves the memory and the disk of a machine that runs to another QEMU: NBD for the disk, a migration stream for the memory, both through
// unix sockets. It never lets a machine run on whose memory may be complete elsewhere: who asks for `goOn` must know that it is not.
//
//   source: mirror ─► ready ─► migrate ─► pre-switchover (still) ─► end of mirror ─► handed over ─► continue ─► completed (still)
//   target: wait (-incoming, -S) ──────────────────────────────────────────────────────────────────────────► completed (still)

import { sleep, type Clock } from '../../../../base/clock.ts';
import { isRecord } from '../../../../base/is-record.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { socketFolder } from '../../../host/guest-user.ts';
import type { RunLive, RunSend } from '../../guest-life/hypervisor.ts';
import type { Qmp } from '../qmp.ts';
import { differences, machineParts } from './machine-parts.ts';
import { moveSocket, openMoveSockets } from './move-sockets.ts';

const node = 'disk';
const mirrored = 'move-disk';
const memory = 'memory';
/** Until the CPUs stand still. */
const lookMs = 50;
const switchMs = 5;
/** A machine that stands still for the move waits no longer for an answer of the other side. */
const switchMsMax = 10_000;
/** A guest that writes faster than its memory can be sent never arrives. */
const stalledMsMax = 150_000;
/** QEMU's own limit is 128 MiB a second. */
const unlimited = 2 ** 40;

export interface LiveParts {
  readonly directory: string;
  readonly uuid: string;
  readonly clock: Clock;
  session(): Qmp;
  /** Looks how the machine stands, and passes that on. */
  look(): Promise<void>;
}

export function createLiveRun(parts: LiveParts): RunLive {
  return new LiveRun(parts);
}

class LiveRun implements RunLive {
  readonly #parts: LiveParts;

  constructor(parts: LiveParts) {
    this.#parts = parts;
  }

  get #qmp(): Qmp {
    return this.#parts.session();
  }

  parts(): ReturnType<RunLive['parts']> {
    return machineParts(this.#qmp, this.#parts.uuid);
  }

  async expect(machine: Parameters<RunLive['expect']>[0]): Promise<void> {
    const { directory, uuid } = this.#parts;
    const other = differences(await machineParts(this.#qmp, uuid), machine);
    if (other.length > 0)
      throw new DriverError(
        'NotPossible',
        `the guest is on another machine than this host would give it: ${other.join('; ')}`,
      );
    const folder = await socketFolder(directory);
    const pathOf = (name: string): string => (folder === '' ? moveSocket(name) : `${folder}/${moveSocket(name)}`);
    await this.#setCapabilities();
    await this.#qmp.execute('nbd-server-start', { addr: { type: 'unix', data: { path: pathOf(node) } } });
    const exported = { id: mirrored, type: 'nbd', 'node-name': node, name: node, writable: true };
    await this.#qmp.execute('block-export-add', exported);
    await this.#qmp.execute('migrate-incoming', { uri: `unix:${pathOf(memory)}` });
  }

  async received(signal: AbortSignal): Promise<void> {
    await this.#until(signal, lookMs, async () => {
      const status = await this.#migrationStatus();
      if (status === 'failed') throw new DriverError('HypervisorFailed', 'the memory did not arrive');
      return status === 'completed' ? true : undefined;
    });
    await this.#qmp.execute('nbd-server-stop').catch(() => {}); // a disk that is still open elsewhere is closed by force
    await this.#parts.look();
  }

  async send(call: RunSend, signal: AbortSignal): Promise<void> {
    const { directory } = this.#parts;
    const folder = await socketFolder(directory);
    const sockets = await openMoveSockets({ directory, folder }, [node, memory], (name) => call.dial(name));
    try {
      await this.#setCapabilities();
      await this.#qmp.execute('migrate-set-parameters', { 'max-bandwidth': call.bytesPerSecondMax ?? unlimited });
      await this.#mirror(sockets.pathOf(node), call, signal);
      await this.#qmp.execute('migrate', { uri: `unix:${sockets.pathOf(memory)}` });
      await this.#untilStill(call, signal);
      await this.#endMirror();
      call.assertUnderWay();
      signal.throwIfAborted();
      await call.onHandOver();
      await this.#qmp.execute('migrate-continue', { state: 'pre-switchover' });
      // From here on an abort comes too late: what becomes of the guest is decided by the end of the move.
      const status = await this.#within(switchMsMax, async () => {
        const now = await this.#migrationStatus();
        return now === 'completed' || now === 'failed' || now === 'cancelled' ? now : undefined;
      });
      if (status !== 'completed')
        throw new DriverError('HypervisorFailed', `its memory was not sent: ${await this.#why()}`);
    } finally {
      await sockets.close();
    }
    await this.#qmp.execute('blockdev-del', { 'node-name': mirrored }).catch(() => {}); // it goes with QEMU
  }

  async isSent(): Promise<boolean> {
    if ((await this.#migrationStatus()) !== 'completed') return false;
    return fieldsOf(await this.#qmp.execute('query-status'))['status'] === 'postmigrate';
  }

  async settle(why: Parameters<RunLive['settle']>[0]): Promise<boolean> {
    const over = why === 'over';
    const status = await this.#migrationStatus();
    if (status === 'completed' && !over) return false;
    const jobs = await this.#jobs();
    const active = status !== undefined && !['none', 'completed', 'failed', 'cancelled'].includes(status);
    const copied = jobs.some(({ id }) => id === mirrored);
    // A guest may stand still for other reasons.
    if (why === 'found' && !active && !copied) return true;
    if (active) {
      await this.#qmp.execute('migrate_cancel');
      const ended = await this.#within(switchMsMax, async () => {
        const now = await this.#migrationStatus();
        return now !== undefined && ['none', 'completed', 'failed', 'cancelled'].includes(now) ? now : undefined;
      });
      if (ended === 'completed' && !over) return false; // it was faster
    }
    if (copied) await this.#dropMirror();
    await this.#qmp.execute('blockdev-del', { 'node-name': mirrored }).catch(() => {}); // there is none
    await this.#goOn();
    return true;
  }

  /** Nothing of it can run elsewhere. */
  async #goOn(): Promise<void> {
    const still = ['paused', 'finish-migrate', 'postmigrate'];
    const runState = async (): Promise<string> => String(fieldsOf(await this.#qmp.execute('query-status'))['status']);
    // After a cancelled migration QEMU lets it go on by itself, a moment later.
    const deadlineMs = this.#parts.clock.monotonicMs() + 1000;
    for (;;) {
      const state = await runState();
      if (!still.includes(state)) break;
      if (state === 'postmigrate' || this.#parts.clock.monotonicMs() > deadlineMs) {
        await this.#qmp.execute('cont');
        break;
      }
      await sleep(this.#parts.clock, switchMs);
    }
    await this.#parts.look();
  }

  async #setCapabilities(): Promise<void> {
    const names = ['events', 'return-path', 'pause-before-switchover', 'auto-converge'];
    const capabilities = names.map((capability) => ({ capability, state: true }));
    await this.#qmp.execute('migrate-set-capabilities', { capabilities });
  }

  /** Resolves when the other disk has all that this one has, and gets what is written. */
  async #mirror(path: string, { bytesPerSecondMax, onProgress }: RunSend, signal: AbortSignal): Promise<void> {
    await this.#qmp.execute('blockdev-add', {
      driver: 'nbd',
      'node-name': mirrored,
      server: { type: 'unix', path },
      export: node,
    });
    await this.#qmp.execute('blockdev-mirror', {
      'job-id': mirrored,
      device: node,
      target: mirrored,
      sync: 'top', // both lie upon the same image
      'auto-dismiss': false,
      ...(bytesPerSecondMax === undefined ? {} : { speed: bytesPerSecondMax }),
    });
    await this.#until(signal, lookMs, async () => {
      const job = await this.#job();
      if (job.progress !== undefined) onProgress(job.progress);
      if (job.status === 'concluded')
        throw new DriverError('HypervisorFailed', `its disk was not copied: ${job.error}`);
      return job.status === 'ready' ? true : undefined;
    });
  }

  /** Resolves when the processors stand still, with all but the rest of the memory sent. */
  async #untilStill({ onProgress }: RunSend, signal: AbortSignal): Promise<void> {
    const { clock } = this.#parts;
    let least = Infinity;
    let sinceMs = clock.monotonicMs();
    await this.#until(signal, switchMs, async () => {
      const seen = fieldsOf(await this.#qmp.execute('query-migrate'));
      const { status } = seen;
      if (status === 'pre-switchover') return true;
      if (status === 'failed' || status === 'cancelled' || status === 'completed')
        throw new DriverError('HypervisorFailed', `its memory was not sent: ${await this.#why()}`);
      const ram = fieldsOf(seen['ram']);
      const [remaining, total] = [Number(ram['remaining'] ?? Infinity), Number(ram['total'] ?? 0)];
      if (total > 0) onProgress({ bytes: Math.max(0, total - remaining), ofBytes: total });
      if (remaining < least) {
        least = remaining;
        sinceMs = clock.monotonicMs();
      } else if (clock.monotonicMs() - sinceMs > stalledMsMax)
        throw new DriverError('NotPossible', 'the guest writes to its memory faster than it can be sent');
      return undefined;
    });
  }

  /** Nothing is written any more: both disks are equal when the job has ended without an error. */
  async #endMirror(): Promise<void> {
    await this.#qmp.execute('block-job-cancel', { device: mirrored });
    const { error } = await this.#within(switchMsMax, async () => {
      const job = await this.#job();
      return job.status === 'concluded' ? job : undefined;
    });
    await this.#qmp.execute('job-dismiss', { id: mirrored });
    if (error !== undefined) throw new DriverError('HypervisorFailed', `its disk was not copied: ${error}`);
  }

  async #dropMirror(): Promise<void> {
    await this.#qmp.execute('block-job-cancel', { device: mirrored, force: true }).catch(() => {}); // it has ended
    await this.#within(switchMsMax, async () => {
      const found = (await this.#jobs()).find(({ id }) => id === mirrored);
      return found === undefined || found.status === 'concluded' ? true : undefined;
    });
    await this.#qmp.execute('job-dismiss', { id: mirrored }).catch(() => {}); // it is gone already
  }

  async #jobs(): Promise<Job[]> {
    const found: unknown = await this.#qmp.execute('query-jobs');
    return (Array.isArray(found) ? found : []).filter(isRecord).map((job) => {
      const [bytes, ofBytes] = [job['current-progress'], job['total-progress']];
      const { error } = job;
      return {
        id: String(job['id']),
        status: String(job['status']),
        error: typeof error === 'string' ? error : undefined,
        progress: typeof bytes === 'number' && typeof ofBytes === 'number' ? { bytes, ofBytes } : undefined,
      };
    });
  }

  async #job(): Promise<Job> {
    const job = (await this.#jobs()).find(({ id }) => id === mirrored);
    if (job === undefined) throw new DriverError('HypervisorFailed', 'the copy of its disk has ended unasked');
    return job;
  }

  async #migrationStatus(): Promise<string | undefined> {
    const { status } = fieldsOf(await this.#qmp.execute('query-migrate'));
    return typeof status === 'string' ? status : 'none';
  }

  async #why(): Promise<string> {
    const said = fieldsOf(await this.#qmp.execute('query-migrate'))['error-desc'];
    return typeof said === 'string' ? said : 'QEMU says no reason';
  }

  async #until<Found>(signal: AbortSignal, pauseMs: number, look: () => Promise<Found | undefined>): Promise<Found> {
    for (;;) {
      signal.throwIfAborted();
      const found = await look();
      if (found !== undefined) return found;
      await sleep(this.#parts.clock, pauseMs, signal);
    }
  }

  async #within<Found>(limitMs: number, look: () => Promise<Found | undefined>): Promise<Found> {
    const { clock } = this.#parts;
    const deadlineMs = clock.monotonicMs() + limitMs;
    return this.#until(new AbortController().signal, switchMs, async () => {
      const found = await look();
      if (found === undefined && clock.monotonicMs() > deadlineMs)
        throw new DriverError('HypervisorFailed', `QEMU did not end a step of the move within ${limitMs} ms`);
      return found;
    });
  }
}

interface Job {
  readonly id: string;
  readonly status: string;
  readonly error: string | undefined;
  readonly progress: { readonly bytes: number; readonly ofBytes: number } | undefined;
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});
