// The log file of one guest of containers, and beside it how far each container's log has been read. The progress is written
// after the data: an agent that died in between truncates the data without progress, and reads it again.

import { type FileHandle, open, readFile, rename, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { type Static, Type } from 'typebox';
import { Check } from 'typebox/value';
import { guestFiles } from '../guest-life/guest-files.ts';
import { consoleSize } from '../guest-life/ways-in/console-log.ts';
import { createLineMixer } from './line-mixer.ts';
import { Position } from './log-position.ts';

const Progress = Type.Object({
  sizeBytes: Type.Integer({ minimum: 0 }),
  positions: Type.Record(Type.String(), Position),
});

const progressFile = 'console.json';

export class GroupLogFile {
  readonly #directory: string;
  readonly #path: string;
  readonly #mix: (name: string, data: Buffer) => Buffer;
  readonly #positions = new Map<string, Position>();
  #file: Promise<FileHandle> | undefined;
  #writing: Promise<void> = Promise.resolve();

  /** `named`: each line begins with its container's name. */
  constructor({ directory, named }: { readonly directory: string; readonly named: boolean }) {
    this.#directory = directory;
    this.#path = join(directory, guestFiles.console);
    this.#mix = createLineMixer(named);
  }

  /** How far the log of this container has been read. */
  async position(name: string): Promise<Position | undefined> {
    await this.#opened();
    return this.#positions.get(name);
  }

  async append(name: string, data: Buffer, position: Position | undefined): Promise<void> {
    const write = this.#writing.then(async () => {
      const handle = await this.#opened();
      await handle.write(this.#mix(name, data));
      if (position !== undefined) this.#positions.set(name, position);
      const { size: sizeBytes } = await handle.stat();
      await writeProgress(this.#directory, { sizeBytes, positions: Object.fromEntries(this.#positions) });
    });
    this.#writing = write.catch(() => {}); // the caller, who awaits `write`, gets the error
    await write;
  }

  async close(): Promise<void> {
    await this.#writing;
    await (await this.#file)?.close();
    this.#file = undefined;
  }

  #opened(): Promise<FileHandle> {
    this.#file ??= this.#open();
    return this.#file;
  }

  async #open(): Promise<FileHandle> {
    const progress = await readProgress(this.#directory);
    for (const [name, position] of Object.entries(progress?.positions ?? {})) this.#positions.set(name, position);
    if (progress !== undefined && (await consoleSize(this.#path)) > progress.sizeBytes)
      await truncate(this.#path, progress.sizeBytes);
    return open(this.#path, 'a', 0o600);
  }
}

async function readProgress(directory: string): Promise<Static<typeof Progress> | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(join(directory, progressFile), 'utf8'));
    return Check(Progress, value) ? value : undefined;
  } catch {
    return undefined; // not written yet, or lost when the host lost power: duplicate lines are better than missing ones
  }
}

/** Not synced: when a host loses power, its containers end too. */
async function writeProgress(directory: string, progress: Static<typeof Progress>): Promise<void> {
  const path = join(directory, progressFile);
  await writeFile(`${path}.tmp`, JSON.stringify(progress), { mode: 0o600 });
  await rename(`${path}.tmp`, path);
}
