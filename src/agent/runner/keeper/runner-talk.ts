// One connection to the runner of a guest: says hello until it is welcomed, and hands on what the guest says in order. It decides nothing.

import type { Duplex } from 'node:stream';
import type { Clock, Timer } from '../../../base/clock.ts';
import { type AgentCommand, encodeCommand, FrameDecoder, type GuestFrame, type StreamOffsets } from '../protocol.ts';

export interface TalkOptions {
  readonly port: Duplex;
  readonly clock: Clock;
  readonly randomSecret: (length: number) => Buffer;
  /** What is durable now. */
  readonly offsets: () => StreamOffsets;
}

/** A runner that opens its port says so: this is for one that was not heard. */
const helloAgain = { delayMsMin: 2000, delayMsMax: 30_000 };
const pingMs = 15_000;
/** Of commands that the guest has not read. A guest that sends without reading would otherwise fill this host's memory. */
const unheardBytesMax = 64 * 1024;

export class RunnerTalk {
  readonly #options: TalkOptions;
  readonly #decoder = new FrameDecoder();
  #timer: Timer | undefined;
  #ping: Timer | undefined;
  #hellos = 0;

  constructor(options: TalkOptions) {
    this.#options = options;
  }

  say(command: AgentCommand): void {
    const { port } = this.#options;
    if (!port.writable) return;
    if (port.writableLength > unheardBytesMax) port.destroy(new Error('the guest does not read what it is told'));
    else port.write(encodeCommand(command));
  }

  /** The guest sends again all that is not durable. */
  hello(): void {
    const nonce = this.#nonce();
    this.#decoder.expect(nonce);
    this.say({ kind: 'hello', nonce, offsets: this.#options.offsets() });
    const { delayMsMin, delayMsMax } = helloAgain;
    this.#timer?.cancel();
    this.#timer = this.#options.clock.setTimer(Math.min(delayMsMax, delayMsMin * 2 ** this.#hellos++), () => {
      if (!this.#decoder.synced) this.hello();
    });
  }

  /** Nothing is asked any more; what comes is still handed on. */
  rest(): void {
    this.#timer?.cancel();
    this.#ping?.cancel();
  }

  /** Resolves when the connection is over, after all that came was taken. Throws when it broke, or `take` threw. */
  async run(take: (frames: readonly GuestFrame[]) => Promise<void>, signal: AbortSignal): Promise<void> {
    const { port } = this.#options;
    const close = (): void => void port.destroy();
    signal.addEventListener('abort', close, { once: true });
    if (signal.aborted) close();
    port.on('error', () => {}); // the loop below throws it
    try {
      port.write('\n'); // ends a command that was torn
      this.hello();
      this.#pingLater();
      for await (const bytes of port) {
        const frames = this.#hear(bytes);
        if (frames.length > 0) await take(frames);
      }
    } finally {
      this.rest();
      signal.removeEventListener('abort', close);
      port.destroy();
    }
  }

  #hear(bytes: Uint8Array): GuestFrame[] {
    const frames: GuestFrame[] = [];
    for (const heard of this.#decoder.push(bytes)) {
      if (heard.kind === 'lost') this.hello();
      else if (heard.kind === 'welcome' && this.#decoder.synced) {
        this.#hellos = 0;
        frames.push(heard);
      } else if (heard.kind === 'begin') {
        if (!this.#decoder.synced && this.#hellos < hintsMax) this.hello();
      } else frames.push(heard);
    }
    return frames;
  }

  #pingLater(): void {
    this.#ping = this.#options.clock.setTimer(pingMs, () => {
      this.say({ kind: 'ping', nonce: this.#nonce() });
      this.#pingLater();
    });
  }

  #nonce(): string {
    return this.#options.randomSecret(16).toString('hex');
  }
}

/** A program that only pretends to be a runner that begins is not answered for ever. */
const hintsMax = 64;
