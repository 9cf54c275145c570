// Carries bytes between a client and a stream into a guest, each way only as fast as the other end takes them. Reads nothing of them.

import type { Duplex } from 'node:stream';
import type { Carried } from '../../base/carried.ts';
import { drained } from '../../base/drained.ts';
import { type Conversation, controlOf } from './conversation.ts';

/**
 * Resolves when both have ended. A client that is gone ends the stream. `halfOpen`: a guest that has said all may still be spoken to, as
 * with TCP; else its end is the end.
 */
export async function carry(
  conversation: Conversation,
  stream: Duplex,
  { halfOpen, carried }: { readonly halfOpen: boolean; readonly carried: Carried },
): Promise<void> {
  const cut = (): void => void stream.destroy();
  conversation.over.addEventListener('abort', cut, { once: true });
  if (conversation.over.aborted) cut();
  try {
    await Promise.all([toGuest(conversation, stream, carried), fromGuest(conversation, stream, { halfOpen, carried })]);
  } finally {
    conversation.over.removeEventListener('abort', cut);
    stream.destroy();
    conversation.end();
  }
}

async function toGuest(conversation: Conversation, stream: Duplex, carried: Carried): Promise<void> {
  for await (const message of conversation.messages()) {
    if (typeof message === 'string') {
      if (controlOf(message).type === 'end') stream.end();
      continue;
    }
    carried(message.length);
    if (!stream.destroyed && !stream.writableEnded && !stream.write(message)) await drained(stream);
  }
}

async function fromGuest(
  conversation: Conversation,
  stream: Duplex,
  { halfOpen, carried }: { readonly halfOpen: boolean; readonly carried: Carried },
): Promise<void> {
  try {
    for await (const data of stream.iterator({ destroyOnReturn: false })) {
      carried(data.length);
      await conversation.send(data);
    }
  } catch {
    return conversation.end(); // a guest that resets its connection has ended it both ways
  }
  if (halfOpen) await conversation.tell({ type: 'end' });
  else conversation.end();
}
