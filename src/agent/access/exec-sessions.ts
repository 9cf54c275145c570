// The commands in guests that this agent runs for clients (exec-session.ts), by the secret names with which a client comes
// back to its command. Their number is bounded.

import { ApiError } from '../../api/errors.ts';
import type { GuestCommand } from '../drivers/access.ts';
import type { Conversation } from './conversation.ts';
import { CommandSession, type ExecSessionOptions } from './exec-session.ts';

export interface ExecSessions {
  begin(instanceId: string, run: () => Promise<GuestCommand>): Promise<ExecSession>;
  /** Throws `NotFound`. */
  find(instanceId: string, id: string): ExecSession;
  close(): void;
}

export interface ExecSession {
  readonly id: string;
  /** Serves a client until it leaves, another client attaches, or the command has ended and the client was told how. */
  attach(conversation: Conversation, receivedBytes: number): Promise<void>;
}

export interface ExecSessionsOptions extends Omit<ExecSessionOptions, 'forget'> {
  /** For the names of sessions: a client that knows a name may take the session over. */
  readonly randomSecret: (bytes: number) => Uint8Array;
  readonly sessionsMax?: number;
}

const sessionsMaxDefault = 256;

export function createExecSessions(options: ExecSessionsOptions): ExecSessions {
  const sessions = new Map<string, { readonly instanceId: string; readonly session: ExecSession; end(): void }>();
  const sessionsMax = options.sessionsMax ?? sessionsMaxDefault;
  return {
    async begin(instanceId, run) {
      if (sessions.size >= sessionsMax) {
        throw new ApiError(
          'TooManyRequests',
          `this host looks after ${sessions.size} commands already, as many as it may; end some, or wait`,
        );
      }
      const id = Buffer.from(options.randomSecret(16)).toString('base64url');
      sessions.set(id, { instanceId, session: notStarted(id), end: () => {} }); // counted while it starts
      try {
        const command = await run();
        const session = new CommandSession(id, command, { ...options, forget: () => sessions.delete(id) });
        sessions.set(id, { instanceId, session, end: () => session.kill() });
        return session;
      } catch (error) {
        sessions.delete(id);
        throw error;
      }
    },
    find(instanceId, id) {
      const known = sessions.get(id);
      if (known?.instanceId === instanceId) return known.session;
      throw new ApiError('NotFound', 'this command is not known any more: it ended, or its host was restarted');
    },
    close() {
      for (const { end } of sessions.values()) end();
      sessions.clear();
    },
  };
}

const notStarted = (id: string): ExecSession => ({
  id,
  attach: () => Promise.reject(new ApiError('NotFound', 'this command has not begun yet')),
});
