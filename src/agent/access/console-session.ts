// A client at a guest's serial console. Output comes from the log, so that every client sees the same and a new client can see
// earlier output; the client's keys go to the guest.

import type { Clock } from '../../base/clock.ts';
import type { Driver } from '../drivers/driver.ts';
import { followLog } from './guest-log.ts';
import { type Conversation, controlOf } from './conversation.ts';

export interface ConsoleRequest {
  readonly driver: Driver;
  readonly clock: Clock;
  readonly instanceId: string;
  /** The start position in the log. */
  readonly offset: number;
}

/** Resolves when the guest can write no more or the client has disconnected. Throws `DriverError` when the guest takes no keys. */
export async function serveConsole(conversation: Conversation, request: ConsoleRequest): Promise<void> {
  const { driver, instanceId } = request;
  const keyboard = await driver.access?.typeInto?.(instanceId);
  try {
    const listening = (async () => {
      for await (const message of conversation.messages()) {
        if (typeof message === 'string') controlOf(message);
        else await keyboard?.type(message);
      }
    })();
    listening.catch(() => {}); // awaited below
    await Promise.race([listening, say(conversation, request)]);
  } finally {
    keyboard?.close();
    conversation.end();
  }
}

async function say(conversation: Conversation, { driver, clock, instanceId, offset }: ConsoleRequest): Promise<void> {
  const range = { instanceId, offset, follow: true };
  let next: number | undefined;
  for await (const piece of followLog({ driver, clock, range }, conversation.over)) {
    // Also when the log's start was dropped while it was read.
    if (piece.offset !== next) await conversation.tell({ type: 'offset', offset: piece.offset });
    if (piece.data.length > 0) await conversation.send(piece.data);
    next = piece.offset + piece.data.length;
  }
  await conversation.tell({ type: 'end' });
}
