// Copies bytes between a client and a stream to a guest, in each direction only as fast as the receiver takes them. It does not
// interpret them.

import type { Duplex } from 'node:stream';
import type { Carried } from '../../base/carried.ts';
import { drained } from '../../base/drained.ts';
import { type Conversation, controlOf } from './conversation.ts';

/**
 * Resolves when both have ended. When the client disconnects, the stream is ended. `halfOpen`: after the guest closed its side, the
 * client may still send, as with TCP; otherwise the guest's end ends the connection.
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
    return conversation.end(); // a guest that resets its connection has ended it in both directions
  }
  if (halfOpen) await conversation.tell({ type: 'end' });
  else conversation.end();
}
