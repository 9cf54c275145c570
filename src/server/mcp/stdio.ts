// MCP over standard input and output, which belong to the protocol alone.

import type { McpServer } from '@modelcontextprotocol/server';
import { serveStdio, StdioServerTransport } from '@modelcontextprotocol/server/stdio';

/** Resolves when the client has gone or `signal` aborts. */
export async function serveOverStdio(
  create: () => McpServer,
  { signal, warn }: { readonly signal: AbortSignal; readonly warn: (line: string) => void },
): Promise<void> {
  const transport = new StdioServerTransport();
  const server = serveStdio(create, { transport, onerror: (error) => warn(error.message) });
  await ended(transport, signal);
  await server.close();
}

function ended(transport: StdioServerTransport, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const before = transport.onclose;
    // oxlint-disable-next-line unicorn/prefer-add-event-listener -- the library has no events, only this field
    transport.onclose = () => {
      before?.();
      resolve();
    };
    if (signal.aborted) resolve();
    else signal.addEventListener('abort', () => resolve(), { once: true });
  });
}
