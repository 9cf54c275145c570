// One client's connection to one guest. Knows nothing of guests.

import type { WebSocket } from 'ws';
import { ClientControl, type HostControl } from '../../api/access-protocol.ts';
import { ApiError } from '../../api/errors.ts';
import { parse } from '../../api/parse.ts';
import { type MessageLine, messageLine } from '../../base/message-line.ts';

export interface Conversation extends MessageLine {
  tell(control: HostControl): Promise<void>;
}

export function converse(socket: WebSocket): Conversation {
  const line = messageLine(socket);
  return { ...line, tell: (control) => line.send(JSON.stringify(control)) };
}

/** Throws `InvalidRequest`. */
export function controlOf(text: string): ClientControl {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (cause) {
    throw new ApiError('InvalidRequest', 'a text message must be JSON', { cause });
  }
  return parse(ClientControl, value);
}
