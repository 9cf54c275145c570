// Sends the log of a run while it grows, and its artifacts when they are whole; says when both have arrived or are given up.

import type { Timer } from '../../../base/clock.ts';
import type { RunPart } from '../files/run-files.ts';
import type { KeeperOptions } from './keeper-options.ts';
import type { RunRecord } from './run-record.ts';
import { RunUpload, type UploadEnd } from './run-upload.ts';

export interface UploadsOptions extends KeeperOptions {
  /** Both are done with; why something is missing, if it is. */
  readonly sent: (flaw: Partial<RunRecord>) => Promise<void>;
  /** More has arrived. */
  readonly changed: () => void;
}

const progressMs = 1000;

export class RunUploads {
  readonly #options: UploadsOptions;
  readonly #log: RunUpload;
  readonly #artifacts: RunUpload;
  #progress: Timer | undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(options: UploadsOptions) {
    const { store } = options;
    this.#options = options;
    this.#log = this.#upload('log', () => store.record.logBytes);
    this.#artifacts = this.#upload('artifacts', () => (store.record.received ? store.record.artifactsBytes : 0));
  }

  start(signal: AbortSignal): void {
    if (this.#options.store.record.state !== 'ended') this.#running = this.#run(signal);
  }

  wake(): void {
    this.#log.wake();
    this.#artifacts.wake();
  }

  /** After its signal has aborted. */
  async close(): Promise<void> {
    await this.#running;
    this.#progress?.cancel();
  }

  async #run(signal: AbortSignal): Promise<void> {
    const [log, artifacts] = await Promise.all([this.#log.run(signal), this.#artifacts.run(signal)]);
    if (log.end === 'closed' || artifacts.end === 'closed') return;
    await this.#options.sent(flawOf('LogNotStored', log) ?? flawOf('ArtifactsNotStored', artifacts) ?? {});
  }

  #upload(part: RunPart, size: () => number): RunUpload {
    const { store, send, instanceId, clock, prng, log } = this.#options;
    return new RunUpload({
      state: () => ({ size: size(), complete: store.record.received }),
      read: (offset, limit) => store.read(part, offset, limit),
      send: (offset, bytes, signal) =>
        send({ instanceId, incarnation: store.record.incarnation, part, offset, bytes }, signal),
      onSent: (sent) => {
        store.noteSent(part, sent);
        this.#tell();
      },
      sent: store.sentOf(part),
      ...{ clock, prng, log: log.with({ instance: instanceId, part }) },
    });
  }

  /** At most once a second. */
  #tell(): void {
    this.#progress ??= this.#options.clock.setTimer(progressMs, () => {
      this.#progress = undefined;
      this.#options.changed();
    });
  }
}

function flawOf(reason: string, upload: UploadEnd): Partial<RunRecord> | undefined {
  return upload.end === 'refused' ? { reason, message: upload.error.message } : undefined;
}
