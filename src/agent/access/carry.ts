// Carries bytes between a client and a stream into a guest, each way only as fast as the other end takes them. Reads nothing of them.

import type { Duplex } from 'node:stream';
import { drained } from '../../base/drained.ts';
import { type Conversation, controlOf } from './conversation.ts';

/**
 * Resolves when both have ended. A client that is gone ends the stream. `halfOpen`: a guest that has said all may still be spoken to, as
 * with TCP; else its end is the end.
 */
export async function carry(
  conversation: Conversation,
  stream: Duplex,
  { halfOpen }: { readonly halfOpen: boolean },
): Promise<void> {
  const cut = (): void => void stream.destroy();
  conversation.over.addEventListener('abort', cut, { once: true });
  if (conversation.over.aborted) cut();
  try {
    await Promise.all([toGuest(conversation, stream), fromGuest(conversation, stream, halfOpen)]);
  } finally {
    conversation.over.removeEventListener('abort', cut);
    stream.destroy();
    conversation.end();
  }
}

async function toGuest(conversation: Conversation, stream: Duplex): Promise<void> {
  for await (const message of conversation.messages()) {
    if (typeof message === 'string') {
      if (controlOf(message).type === 'end') stream.end();
    } else if (!stream.destroyed && !stream.writableEnded && !stream.write(message)) await drained(stream);
  }
}

async function fromGuest(conversation: Conversation, stream: Duplex, halfOpen: boolean): Promise<void> {
  try {
    for await (const data of stream.iterator({ destroyOnReturn: false })) await conversation.send(data);
  } catch {
    return conversation.end(); // a guest that resets its connection has ended it both ways
  }
  if (halfOpen) await conversation.tell({ type: 'end' });
  else conversation.end();
}
