// One command in a guest that outlives the connection on which it was started. One client at a time is attached to it.
//
//   started ─► attached ◄─► detached ─(kept 10 minutes)─► killed
//                 └─► ended ─(reported to a client, or 10 minutes)─► forgotten

import { execReplayBytes, execStreams } from '../../api/access-protocol.ts';
import { ApiError } from '../../api/errors.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { describeError, type Logger } from '../../base/log.ts';
import type { GuestCommand } from '../drivers/access.ts';
import { type Conversation, controlOf } from './conversation.ts';
import { ExecReplay } from './exec-replay.ts';

export interface ExecSessionOptions {
  readonly clock: Clock;
  readonly log: Logger;
  readonly keptMs?: number;
  readonly replayBytes?: number;
  /** The session is over: it cannot be found any more. */
  forget(): void;
}

const keptMsDefault = 10 * 60 * 1000;

type Outcome =
  | { readonly type: 'exit'; readonly code: number; readonly signal?: number }
  | { readonly type: 'error'; readonly code: string; readonly message: string };

export class CommandSession {
  readonly id: string;
  readonly #command: GuestCommand;
  readonly #options: ExecSessionOptions;
  readonly #replay: ExecReplay;
  readonly #ended = new AbortController();
  #inputBytes = 0;
  #outcome: Outcome | undefined;
  #attached: AbortController | undefined;
  #idle = new AbortController();

  constructor(id: string, command: GuestCommand, options: ExecSessionOptions) {
    this.id = id;
    this.#command = command;
    this.#options = options;
    this.#replay = new ExecReplay(options.replayBytes ?? execReplayBytes);
    this.#follow().catch((error: unknown) => options.log.error('a command was lost', { error: describeError(error) }));
    void this.#keepFor();
  }

  /** Serves a client until it leaves, another client attaches, or the command has ended and the client was told how. */
  async attach(conversation: Conversation, receivedBytes: number): Promise<void> {
    this.#assertReplayable(receivedBytes);
    this.#attached?.abort(); // the newest client wins: the older one is most likely dead
    this.#idle.abort();
    const leave = new AbortController();
    this.#attached = leave;
    conversation.over.addEventListener('abort', () => leave.abort(), { once: true });
    leave.signal.addEventListener('abort', () => this.#replay.wakeReaders(), { once: true });
    await conversation.tell({ type: 'started', session: this.id, inputBytes: this.#inputBytes });
    try {
      await this.#serve(conversation, receivedBytes, leave);
    } finally {
      leave.abort();
      if (this.#attached === leave) {
        this.#attached = undefined;
        void this.#keepFor();
      }
    }
  }

  /** Ends the command. */
  kill(): void {
    this.#ended.abort();
    this.#replay.wakeWriter();
    this.#command.kill();
    this.#attached?.abort();
    this.#options.forget();
  }

  #assertReplayable(receivedBytes: number): void {
    this.#replay.trim(); // drop old output now, not while this client is being sent it
    const { firstByte, writtenBytes } = this.#replay;
    if (receivedBytes >= firstByte && receivedBytes <= writtenBytes) return;
    throw new ApiError(
      'Compacted',
      `cannot go on at byte ${receivedBytes} of what the command wrote: bytes ${firstByte} to ${writtenBytes} are here`,
    );
  }

  async #serve(conversation: Conversation, receivedBytes: number, leave: AbortController): Promise<void> {
    const receiving = this.#receive(conversation, leave.signal);
    receiving.catch(() => {}); // awaited below
    const sending = this.#send(conversation, receivedBytes, leave.signal);
    await Promise.race([receiving, sending]);
    leave.abort();
    if (await sending) this.#options.forget();
  }

  /** Collects the output and the outcome of the command. */
  async #follow(): Promise<void> {
    try {
      for await (const output of this.#command.output()) {
        this.#replay.push(output);
        await this.#replay.room(this.#ended.signal);
      }
      this.#outcome = { type: 'exit', ...(await this.#command.exit) };
    } catch (error) {
      const message = `how the command ended is unknown: ${describeError(error)}`;
      this.#outcome = { type: 'error', code: 'Internal', message };
    }
    this.#replay.wakeReaders();
  }

  async #keepFor(): Promise<void> {
    const { clock, keptMs = keptMsDefault } = this.#options;
    this.#idle = new AbortController();
    const waiting = this.#idle.signal;
    await sleep(clock, keptMs, waiting);
    if (!waiting.aborted) this.kill();
  }

  /** Returns true when the client was told how the command ended. */
  async #send(conversation: Conversation, fromByte: number, leave: AbortSignal): Promise<boolean> {
    const take = this.#replay.readerAt(fromByte);
    while (!leave.aborted) {
      const { changed } = this.#replay;
      const next = take();
      if (next !== undefined) {
        await conversation.send(next.message);
        if (leave.aborted) return false;
        this.#replay.noteSent(next.toByte);
      } else if (this.#outcome !== undefined) {
        await conversation.tell(this.#outcome);
        conversation.end();
        return true;
      } else await changed;
    }
    return false;
  }

  /** Passes input, and changes of the terminal's size, to the command. */
  async #receive(conversation: Conversation, leave: AbortSignal): Promise<void> {
    for await (const message of conversation.messages()) {
      if (leave.aborted) return;
      if (typeof message !== 'string') {
        if (message[0] !== execStreams.stdin) continue;
        this.#inputBytes += message.length - 1;
        await this.#command.write(message.subarray(1));
        continue;
      }
      const control = controlOf(message);
      if (control.type === 'end') this.#command.endInput();
      else if (control.type === 'resize') await this.#command.resize(control);
      else return this.kill();
    }
  }
}
