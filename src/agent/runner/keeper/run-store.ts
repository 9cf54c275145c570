// The record of one run and its files, which agree after every write: what the record does not count is not there.

import type { RunFiles, RunFolder, RunPart } from '../files/run-files.ts';
import type { StreamOffsets } from '../protocol.ts';
import { encodeRecord, newestRecord, newRecord, placeOf, type RunRecord } from './run-record.ts';

/** Undefined when nothing that is whole was recorded. */
export async function findRun(files: RunFiles, instanceId: string): Promise<RunStore | undefined> {
  const folder = await files.open(instanceId);
  const record = newestRecord(await folder.readRecords());
  if (record === undefined) {
    await folder.close();
    return undefined;
  }
  await folder.truncate('log', record.logBytes);
  await folder.truncate('artifacts', record.artifactsBytes);
  return new RunStore(folder, record);
}

/** Of a run that has not begun; nothing of an earlier one is left. */
export async function makeRun(files: RunFiles, run: { readonly instanceId: string; readonly incarnation: number }) {
  const folder = await files.open(run.instanceId);
  const store = new RunStore(folder, newRecord(run.incarnation));
  await store.save({});
  return store;
}

export class RunStore {
  readonly #folder: RunFolder;
  #record: RunRecord;

  constructor(folder: RunFolder, record: RunRecord) {
    this.#folder = folder;
    this.#record = record;
  }

  get record(): RunRecord {
    return this.#record;
  }

  get offsets(): StreamOffsets {
    const { stdout, stderr, artifacts } = this.#record;
    return { stdout, stderr, artifacts };
  }

  /** One at a time. */
  async save(change: Partial<RunRecord>): Promise<void> {
    const next = { ...this.#record, ...change, sequence: this.#record.sequence + 1 };
    await this.#folder.writeRecord(placeOf(next), encodeRecord(next));
    const { sentLog, sentArtifacts } = this.#record; // noted meanwhile
    this.#record = { ...next, sentLog, sentArtifacts };
  }

  /** Appends, and then records it with `change`. */
  async append(log: Uint8Array, artifacts: Uint8Array, change: Partial<RunRecord>): Promise<void> {
    const { logBytes, artifactsBytes } = this.#record;
    if (log.length > 0) await this.#folder.write('log', logBytes, log);
    if (artifacts.length > 0) await this.#folder.write('artifacts', artifactsBytes, artifacts);
    await this.save({
      ...change,
      logBytes: logBytes + log.length,
      artifactsBytes: artifactsBytes + artifacts.length,
    });
  }

  /** What the control plane has. Recorded with the next write: an agent that starts again may send some of it twice. */
  noteSent(part: RunPart, size: number): void {
    this.#record = { ...this.#record, [part === 'log' ? 'sentLog' : 'sentArtifacts']: size };
  }

  sizeOf(part: RunPart): number {
    return part === 'log' ? this.#record.logBytes : this.#record.artifactsBytes;
  }

  sentOf(part: RunPart): number {
    return part === 'log' ? this.#record.sentLog : this.#record.sentArtifacts;
  }

  /** Also while something is appended. */
  async read(part: RunPart, offset: number, limit: number): Promise<Uint8Array<ArrayBuffer>> {
    return this.#folder.read(part, offset, Math.min(limit, this.sizeOf(part) - offset));
  }

  async close(): Promise<void> {
    await this.#folder.close();
  }
}
