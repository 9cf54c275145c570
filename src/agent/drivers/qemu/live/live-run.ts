// Moves the memory and the disks of a running machine to another QEMU: NBD for the disks, a migration stream for the memory, both through unix
// sockets. Must never resume a machine whose memory may be complete on the target: callers of `goOn` must know that it is not.
//
//   source: mirrors ─► ready ─► migrate ─► pre-switchover (still) ─► end of mirrors ─► handed over ─► continue ─► completed (still)
//   target: wait (-incoming, -S) ───────────────────────────────────────────────────────────────────────────► completed (still)

import type { LiveMachine } from '../../../../api/agent-protocol.ts';
import { sleep, type Clock } from '../../../../base/clock.ts';
import { isRecord } from '../../../../base/is-record.ts';
import { DriverError } from '../../../host/driver-error.ts';
import { socketFolder } from '../../../host/guest-user.ts';
import type { RunLive, RunSend } from '../../guest-life/hypervisor.ts';
import type { Qmp } from '../qmp.ts';
import { differences, machineParts } from './machine-parts.ts';
import { moveSocket, openMoveSockets } from './move-sockets.ts';

const node = 'disk';
/** Jobs of the source, and its nodes for the disks of the target. A node's name has at most 31 characters. */
const mirrorPattern = /^move-(disk|\d+)$/;
const memory = 'memory';
/** Time limit until the CPUs are stopped. */
const lookMs = 50;
const switchMs = 5;
/** Maximum time for which a paused machine waits for the other side. */
const switchMsMax = 10_000;
/** A guest that writes to its memory faster than it can be sent would never arrive. */
const stalledMsMax = 150_000;
/** QEMU's own limit is 128 MiB a second. */
const unlimited = 2 ** 40;

export interface LiveParts {
  readonly directory: string;
  readonly uuid: string;
  readonly clock: Clock;
  session(): Qmp;
  /** When the processors last began to stand still, on the monotonic clock. */
  stoppedAtMs(): number | undefined;
  /** Queries the state of the machine, and passes it on. */
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
    for (const { node: name, mirror: id } of mirrorsOf(machine)) {
      const exported = { id, type: 'nbd', 'node-name': name, name, writable: true };
      await this.#qmp.execute('block-export-add', exported);
    }
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

  async send(call: RunSend, signal: AbortSignal): Promise<number> {
    const { directory, clock } = this.#parts;
    const folder = await socketFolder(directory);
    const mirrors = mirrorsOf(await this.parts());
    const sockets = await openMoveSockets({ directory, folder }, [node, memory], (name) => call.dial(name));
    try {
      await this.#setCapabilities();
      await this.#qmp.execute('migrate-set-parameters', { 'max-bandwidth': call.bytesPerSecondMax ?? unlimited });
      for (const mirror of mirrors) await this.#mirror(sockets.pathOf(node), mirror, call);
      await this.#untilMirrored(mirrors, call, signal);
      await this.#qmp.execute('migrate', { uri: `unix:${sockets.pathOf(memory)}` });
      await this.#untilStill(call, signal);
      await this.#endMirrors(mirrors);
      call.assertUnderWay();
      signal.throwIfAborted();
      await call.onHandOver();
      await this.#qmp.execute('migrate-continue', { state: 'pre-switchover' });
      // From here on it is too late to abort: the result of the move decides about the guest.
      const status = await this.#within(switchMsMax, async () => {
        const now = await this.#migrationStatus();
        return now === 'completed' || now === 'failed' || now === 'cancelled' ? now : undefined;
      });
      if (status !== 'completed')
        throw new DriverError('HypervisorFailed', `its memory was not sent: ${await this.#why()}`);
    } finally {
      await sockets.close();
    }
    for (const { mirror } of mirrors) await this.#qmp.execute('blockdev-del', { 'node-name': mirror }).catch(() => {}); // it goes with QEMU
    return clock.monotonicMs() - (this.#parts.stoppedAtMs() ?? clock.monotonicMs());
  }

  async isSent(): Promise<boolean> {
    if ((await this.#migrationStatus()) !== 'completed') return false;
    return fieldsOf(await this.#qmp.execute('query-status'))['status'] === 'postmigrate';
  }

  async settle(why: Parameters<RunLive['settle']>[0]): Promise<boolean> {
    const over = why === 'over';
    const status = await this.#migrationStatus();
    if (status === 'completed' && !over) return false;
    const jobs = (await this.#jobs()).filter(({ id }) => mirrorPattern.test(id));
    const active = status !== undefined && !['none', 'completed', 'failed', 'cancelled'].includes(status);
    // A guest may be paused for other reasons.
    if (why === 'found' && !active && jobs.length === 0) return true;
    if (active) {
      await this.#qmp.execute('migrate_cancel');
      const ended = await this.#within(switchMsMax, async () => {
        const now = await this.#migrationStatus();
        return now !== undefined && ['none', 'completed', 'failed', 'cancelled'].includes(now) ? now : undefined;
      });
      if (ended === 'completed' && !over) return false; // it was faster
    }
    for (const { id } of jobs) await this.#dropMirror(id);
    const nodes: unknown = await this.#qmp.execute('query-named-block-nodes', { flat: true });
    for (const { 'node-name': name } of Array.isArray(nodes) ? nodes.filter(isRecord) : [])
      if (mirrorPattern.test(String(name)))
        await this.#qmp.execute('blockdev-del', { 'node-name': name }).catch(() => {}); // it goes with QEMU
    await this.#goOn();
    return true;
  }

  /** The guest cannot run on the target. */
  async #goOn(): Promise<void> {
    const still = ['paused', 'finish-migrate', 'postmigrate'];
    const runState = async (): Promise<string> => String(fieldsOf(await this.#qmp.execute('query-status'))['status']);
    // After a cancelled migration, QEMU itself resumes the machine a moment later.
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

  async #mirror(path: string, { node: name, mirror }: Mirror, { bytesPerSecondMax }: RunSend): Promise<void> {
    await this.#qmp.execute('blockdev-add', {
      driver: 'nbd',
      'node-name': mirror,
      server: { type: 'unix', path },
      export: name,
    });
    await this.#qmp.execute('blockdev-mirror', {
      'job-id': mirror,
      device: name,
      target: mirror,
      sync: 'top', // both have the same image below them, or none
      'auto-dismiss': false,
      ...(bytesPerSecondMax === undefined ? {} : { speed: bytesPerSecondMax }),
    });
  }

  /** Resolves when the disks of the target are in sync, and receive further writes. */
  async #untilMirrored(mirrors: readonly Mirror[], { onProgress }: RunSend, signal: AbortSignal): Promise<void> {
    await this.#until(signal, lookMs, async () => {
      const jobs = await this.#mirrorJobs(mirrors);
      const seen = jobs.flatMap(({ progress }) => progress ?? []);
      if (seen.length > 0)
        onProgress({
          bytes: seen.reduce((sum, { bytes }) => sum + bytes, 0),
          ofBytes: seen.reduce((sum, { ofBytes }) => sum + ofBytes, 0),
        });
      const ended = jobs.find(({ status }) => status === 'concluded');
      if (ended) throw notCopied(ended);
      return jobs.every(({ status }) => status === 'ready') ? true : undefined;
    });
  }

  /** Resolves when the CPUs are stopped, and only the rest of the memory has to be sent. */
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

  /** The guest no longer writes: the disks are equal when their jobs have ended without an error. */
  async #endMirrors(mirrors: readonly Mirror[]): Promise<void> {
    for (const { mirror } of mirrors) await this.#qmp.execute('block-job-cancel', { device: mirror });
    const ended = await this.#within(switchMsMax, async () => {
      const jobs = await this.#mirrorJobs(mirrors);
      return jobs.every(({ status }) => status === 'concluded') ? jobs : undefined;
    });
    for (const { mirror } of mirrors) await this.#qmp.execute('job-dismiss', { id: mirror });
    const failed = ended.find(({ error }) => error !== undefined);
    if (failed) throw notCopied(failed);
  }

  async #dropMirror(mirror: string): Promise<void> {
    await this.#qmp.execute('block-job-cancel', { device: mirror, force: true }).catch(() => {}); // it has ended
    await this.#within(switchMsMax, async () => {
      const found = (await this.#jobs()).find(({ id }) => id === mirror);
      return found === undefined || found.status === 'concluded' ? true : undefined;
    });
    await this.#qmp.execute('job-dismiss', { id: mirror }).catch(() => {}); // it is gone already
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

  async #mirrorJobs(mirrors: readonly Mirror[]): Promise<Job[]> {
    const all = await this.#jobs();
    return mirrors.map(({ node: name, mirror }) => {
      const job = all.find(({ id }) => id === mirror);
      if (job === undefined) throw new DriverError('HypervisorFailed', `the copy of its ${name} has ended unasked`);
      return { ...job, id: name };
    });
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

/** A disk of the machine, and the job that copies it. */
interface Mirror {
  readonly node: string;
  readonly mirror: string;
}

/** The same on both hosts. */
function mirrorsOf({ disks }: Pick<LiveMachine, 'disks'>): Mirror[] {
  const volumes = disks.map(({ name }) => name).filter((name) => name !== node);
  return [
    { node, mirror: `move-${node}` },
    ...volumes.sort().map((name, i) => ({ node: name, mirror: `move-${i + 1}` })),
  ];
}

const notCopied = ({ id, error }: Job): DriverError =>
  new DriverError('HypervisorFailed', `its ${id} was not copied: ${error}`);

interface Job {
  readonly id: string;
  readonly status: string;
  readonly error: string | undefined;
  readonly progress: { readonly bytes: number; readonly ofBytes: number } | undefined;
}

const fieldsOf = (value: unknown): Readonly<Record<string, unknown>> => (isRecord(value) ? value : {});
