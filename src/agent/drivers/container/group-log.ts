// Takes in what the containers of one guest write, into one file with offsets that never change. How far it has come is on disk beside it,
// after what it speaks of: an agent that died in between cuts off what nobody vouches for, and takes it in again. No line twice, none lost.

import { type FileHandle, open, readFile, rename, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Static, Type } from 'typebox';
import { Check } from 'typebox/value';
import { type Clock, sleep } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { createPace } from '../../../base/work/pace.ts';
import { consoleSize } from '../guest-life/ways-in/console-log.ts';
import { guestFiles } from '../guest-life/guest-files.ts';
import type { Engine } from './engine.ts';
import type { Frame } from './frames.ts';
import { createLineMixer } from './line-mixer.ts';

export interface GroupLog {
  /** Whether a container runs: from then on it is listened to, until it does no more. */
  seen(name: string, running: boolean): void;
  /** Takes in what there still is, of a guest that has ended. Never rejects; what cannot be had in time stays with the engine. */
  finish(): Promise<void>;
  /** Lets go; the next one goes on from here. */
  stop(): Promise<void>;
}

export interface GroupLogOptions {
  readonly engine: Engine;
  readonly clock: Clock;
  readonly log: Logger;
  /** The guest's. */
  readonly directory: string;
  readonly containers: readonly { readonly name: string; readonly container: string }[];
}

/** The last time of which lines were taken in, as the engine wrote it, and how many of that time: podman's have whole seconds. */
const Position = Type.Object({ time: Type.String({ maxLength: 64 }), lines: Type.Integer({ minimum: 1 }) });
type Position = Static<typeof Position>;

const Progress = Type.Object({
  sizeBytes: Type.Integer({ minimum: 0 }),
  positions: Type.Record(Type.String(), Position),
});

const progressFile = 'console.json';
const retryMs = 1000;
/** What one guest may write in the long run. What it writes beyond that the engine keeps, and drops when it has too much of it. */
const bytesPerSecond = 2 * 1024 * 1024;
const finishMs = 10_000; // reading 8 MiB takes a tenth of a second

export function followGroup(options: GroupLogOptions): GroupLog {
  const { engine, clock, log, directory } = options;
  const path = join(directory, guestFiles.console);
  const stopping = new AbortController();
  const listening = new Map<string, Promise<void>>();
  const running = new Set<string>();
  const positions = new Map<string, Position>();
  const mix = createLineMixer(options.containers.length > 1);
  let file: Promise<FileHandle> | undefined;
  let writing: Promise<void> = Promise.resolve();
  /** A flood must not keep the agent from everything else. */
  const pace = createPace({ clock, perSecond: bytesPerSecond, atOnceMax: bytesPerSecond });

  const opened = (): Promise<FileHandle> => {
    file ??= (async () => {
      const progress = await readProgress(directory);
      for (const [name, position] of Object.entries(progress?.positions ?? {})) positions.set(name, position);
      if (progress !== undefined && (await consoleSize(path)) > progress.sizeBytes)
        await truncate(path, progress.sizeBytes);
      return open(path, 'a', 0o600);
    })();
    return file;
  };

  const append = async (name: string, data: Buffer, position: Position | undefined): Promise<void> => {
    const write = writing.then(async () => {
      const handle = await opened();
      await handle.write(mix(name, data));
      if (position !== undefined) positions.set(name, position);
      const { size: sizeBytes } = await handle.stat();
      await writeProgress(directory, { sizeBytes, positions: Object.fromEntries(positions) });
    });
    writing = write.catch(() => {}); // whoever awaits `write` is told
    await write;
  };

  const take = async (
    { name, container }: GroupLogOptions['containers'][number],
    range: { readonly follow: boolean; readonly signal: AbortSignal },
  ): Promise<void> => {
    await opened();
    const known = positions.get(name);
    const sinceSeconds = known === undefined ? 0 : Math.max(0, Number(nanoseconds(known.time) / second) - 1);
    const filter = createFilter(known);
    for await (const frames of engine.logs(container, { ...range, sinceSeconds })) {
      const fresh = filter.take(frames);
      if (fresh.length > 0) await append(name, fresh, filter.position());
      if (range.follow) await pace.take(fresh.length, stopping.signal);
      if (range.signal.aborted) return;
    }
  };

  /** Until the container runs no more, and all that it wrote is here. */
  const listen = async (each: GroupLogOptions['containers'][number]): Promise<void> => {
    while (!stopping.signal.aborted) {
      const over = !running.has(each.name);
      try {
        await take(each, { follow: !over, signal: stopping.signal });
        if (over) return;
      } catch (error) {
        if (!stopping.signal.aborted)
          log.debug('cannot read what a container writes; trying again', {
            container: each.container,
            error: describeError(error),
          });
      }
      if (running.has(each.name)) await sleep(clock, retryMs, stopping.signal);
    }
  };

  const release = async (): Promise<void> => {
    stopping.abort();
    await Promise.all(listening.values());
    await writing;
    await (await file)?.close();
    file = undefined;
  };

  return {
    seen(name, isRunning) {
      const each = options.containers.find((container) => container.name === name);
      if (each === undefined || stopping.signal.aborted) return;
      if (isRunning) running.add(name);
      else running.delete(name);
      if (!isRunning || listening.has(name)) return;
      const done = listen(each).finally(() => {
        if (listening.get(name) === done) listening.delete(name);
      });
      listening.set(name, done);
    },
    async finish() {
      stopping.abort();
      await Promise.all(listening.values());
      const limit = new AbortController();
      const timer = clock.setTimer(finishMs, () => limit.abort());
      try {
        for (const each of options.containers) await take(each, { follow: false, signal: limit.signal });
      } catch (error) {
        log.warn('cannot read the last words of a guest', { error: describeError(error) });
      } finally {
        timer.cancel();
        await release().catch((error: unknown) => log.warn('cannot close a log', { error: describeError(error) }));
      }
    },
    stop: release,
  };
}

/** Passes over what was taken in before, and counts what comes. */
function createFilter(known: Position | undefined): {
  take(frames: readonly Frame[]): Buffer;
  position(): Position | undefined;
} {
  let position = known;
  let resuming = known !== undefined;
  let skip = known?.lines ?? 0;
  let passing = false;
  const isOld = (time: string): boolean => {
    if (!resuming || known === undefined) return false;
    const [its, last] = [nanoseconds(time), nanoseconds(known.time)];
    if (its < last) return true;
    if (its === last && skip > 0) {
      skip -= 1;
      return true;
    }
    resuming = false; // from here on a clock may jump as it likes
    return false;
  };
  return {
    position: () => position,
    take(frames) {
      const fresh: Buffer[] = [];
      for (const { data, begins } of frames) {
        if (!begins) {
          if (!passing) fresh.push(data);
          continue;
        }
        const space = data.indexOf(' ');
        const time = data.subarray(0, Math.max(0, space)).toString('latin1');
        passing = isOld(time);
        if (passing) continue;
        position = position?.time === time ? { time, lines: position.lines + 1 } : { time, lines: 1 };
        fresh.push(data.subarray(space + 1));
      }
      return Buffer.concat(fresh);
    },
  };
}

const second = 1_000_000_000n;

/** Since the Unix epoch; of "2026-11-22T05:38:44.12Z". 0 for what is no time. */
function nanoseconds(time: string): bigint {
  const [, whole = '', fraction = '', zone = ''] = /^([^.Z+]{19})(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)$/.exec(time) ?? [];
  const milliseconds = Date.parse(`${whole}${zone}`);
  if (Number.isNaN(milliseconds)) return 0n;
  return BigInt(milliseconds) * 1_000_000n + BigInt(fraction.padEnd(9, '0'));
}

async function readProgress(directory: string): Promise<Static<typeof Progress> | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(join(directory, progressFile), 'utf8'));
    return Check(Progress, value) ? value : undefined;
  } catch {
    return undefined; // not there yet, or lost with the host's last moments: lines twice are better than none
  }
}

/** Not synced: of a host that loses power its containers have ended, too. */
async function writeProgress(directory: string, progress: Static<typeof Progress>): Promise<void> {
  const path = join(directory, progressFile);
  await writeFile(`${path}.tmp`, JSON.stringify(progress), { mode: 0o600 });
  await rename(`${path}.tmp`, path);
}
