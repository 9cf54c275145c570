// Files of moving guests on this host's disk, a folder for each move: INCOMING/<instance>.<incarnation>/. `state.json` says how much of each
// file is here; bytes beyond that are written again. A file loses its suffix `.part` when all are whole.

import { mkdir, open, readdir, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Type } from 'typebox';
import { matches } from '../../api/parse.ts';
import { assert } from '../../base/assert.ts';
import { syncDirectory, writeWhole } from '../host/write-whole.ts';
import type { Incoming, IncomingFiles, IncomingLook, ReceivedFile } from './moved-files.ts';
import { openDisk } from './open-disk.ts';

const stateFile = 'state.json';
const folderPattern = /^(inst_[0-9a-z]{26})\.([1-9]\d{0,15})$/;
const namePattern = /^(disk|vol_[0-9a-z]{26})$/;

const Stored = Type.Object({
  id: Type.String(),
  whole: Type.Boolean(),
  files: Type.Array(
    Type.Object({
      name: Type.String(),
      sizeBytes: Type.Integer({ minimum: 0 }),
      doneBytes: Type.Integer({ minimum: 0 }),
    }),
  ),
});

export function createHostIncomingFiles(options: {
  readonly directory: string;
  /** 0o711 where guests run as another user. */
  readonly directoryMode: 0o700 | 0o711;
}): IncomingFiles {
  return new HostIncomingFiles(options);
}

class HostIncomingFiles implements IncomingFiles {
  readonly #directory: string;
  readonly #mode: number;

  constructor({ directory, directoryMode }: { readonly directory: string; readonly directoryMode: number }) {
    this.#directory = directory;
    this.#mode = directoryMode;
  }

  async list(): Promise<readonly (Incoming & IncomingLook)[]> {
    const names = await readdir(this.#directory).catch(absent);
    const found = await Promise.all(
      (names ?? []).map(async (name) => {
        const [, instanceId, incarnation] = folderPattern.exec(name) ?? [];
        if (instanceId === undefined) return [];
        const incoming = { instanceId, incarnation: Number(incarnation) };
        const look = await this.look(incoming);
        return [{ ...incoming, ...(look ?? nothing) }];
      }),
    );
    return found.flat();
  }

  async look(incoming: Incoming): Promise<IncomingLook | undefined> {
    const text = await readFile(join(this.#folderOf(incoming), stateFile), 'utf8').catch(absent);
    if (text === undefined) return undefined;
    const value: unknown = JSON.parse(text);
    return matches(Stored, value) ? value : undefined;
  }

  async begin(incoming: Incoming, look: IncomingLook): Promise<void> {
    await this.#makeFolder(incoming);
    for (const { name } of look.files) await (await open(this.#partOf(incoming, name), 'w', 0o600)).close();
    await this.#save(incoming, look);
    await syncDirectory(this.#directory);
  }

  /** They have their final names from the start; `whole` says that they are complete. */
  async expect(incoming: Incoming, look: IncomingLook): Promise<void> {
    await this.#makeFolder(incoming);
    await this.#save(incoming, look);
    await syncDirectory(this.#directory);
  }

  async #makeFolder(incoming: Incoming): Promise<void> {
    await this.discard(incoming);
    await mkdir(this.#directory, { recursive: true, mode: this.#mode });
    await mkdir(this.#folderOf(incoming), { mode: this.#mode });
  }

  async append(
    incoming: Incoming,
    { name, length, bytes }: { readonly name: string; readonly length: number; readonly bytes?: Uint8Array },
  ): Promise<void> {
    const look = await this.#known(incoming);
    const at = look.files.find((file) => file.name === name)?.doneBytes ?? 0;
    const file = await open(this.#partOf(incoming, name), 'r+');
    try {
      await file.truncate(at); // what a killed agent wrote beyond
      if (bytes === undefined) await file.truncate(at + length);
      else await writeAll(file, bytes, at);
      await file.sync();
    } finally {
      await file.close();
    }
    const files = look.files.map((each) => (each.name === name ? { ...each, doneBytes: at + length } : each));
    await this.#save(incoming, { ...look, files });
  }

  async finish(incoming: Incoming): Promise<void> {
    const look = await this.#known(incoming);
    for (const { name } of look.files) {
      const path = this.fileOf(incoming, name).path;
      await rename(this.#partOf(incoming, name), path).catch(absent); // by an agent that was killed
    }
    await syncDirectory(this.#folderOf(incoming));
    await this.#save(incoming, { ...look, whole: true });
  }

  fileOf(incoming: Incoming, name: string): ReceivedFile {
    if (!namePattern.test(name)) throw new RangeError(`"${name}" is no file of a move`);
    const path = join(this.#folderOf(incoming), `${name}.qcow2`);
    return {
      path,
      bytes: () => readFile(path),
      open: () => openDisk(path),
      write: () => assert(false, 'a real disk is written by its hypervisor'),
    };
  }

  async discard(incoming: Incoming): Promise<void> {
    await rm(this.#folderOf(incoming), { recursive: true, force: true });
    await syncDirectory(this.#directory).catch(absent);
  }

  async #known(incoming: Incoming): Promise<IncomingLook> {
    const look = await this.look(incoming);
    if (look === undefined) throw new Error(`nothing of ${incoming.instanceId} has been received`);
    return look;
  }

  #save(incoming: Incoming, look: IncomingLook): Promise<void> {
    return writeWhole(join(this.#folderOf(incoming), stateFile), `${JSON.stringify(look)}\n`);
  }

  #folderOf({ instanceId, incarnation }: Incoming): string {
    const name = `${instanceId}.${incarnation}`;
    if (!folderPattern.test(name)) throw new RangeError(`"${name}" is no instance`);
    return join(this.#directory, name);
  }

  #partOf(incoming: Incoming, name: string): string {
    return `${this.fileOf(incoming, name).path}.part`;
  }
}

const nothing: IncomingLook = { id: '', files: [], whole: false };

async function writeAll(file: Awaited<ReturnType<typeof open>>, bytes: Uint8Array, at: number): Promise<void> {
  for (let done = 0; done < bytes.length; ) {
    const { bytesWritten } = await file.write(bytes, done, bytes.length - done, at + done);
    done += bytesWritten;
  }
}

function absent(error: unknown): undefined {
  if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
  throw error;
}
