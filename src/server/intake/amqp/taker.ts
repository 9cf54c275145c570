// What becomes of the messages of one queue. An intake takes them from the broker, and acknowledges or buries them.

import type { BrokerMessage } from './broker.ts';

export interface Taker {
  /** Resolves when what the message asks for is durable. Rejects with why it is not. */
  take(message: BrokerMessage): Promise<void>;
  /** Why a message is to be buried; undefined: it may be tried again. */
  refusalOf(error: unknown): { readonly reason: string; readonly message: string } | undefined;
  /** How many wait for a place: the intake pauses while they are many. */
  readonly waiting: number;
  stop(): void;
}

/** `changed` is to be called after each change of `waiting`. */
export type StartTaker = (changed: () => void) => Taker;
