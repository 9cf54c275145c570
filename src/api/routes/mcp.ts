// The route of MCP over streamable HTTP. What it answers is the protocol's, not ours.

import { anyObject, json, route } from './route.ts';

export const mcpRoutes = {
  mcp: route({
    id: 'mcp',
    tag: 'mcp',
    method: 'POST',
    path: '/mcp',
    access: 'self',
    audit: 'no', // the calls that it makes are written down, as those of this caller
    summary: 'Speak the Model Context Protocol; docs/mcp.md',
    body: anyObject,
    bodyDescription: 'one JSON-RPC message',
    bodyCheckedByHandler: true,
    answers: { 200: json(anyObject, 'the response'), 202: { description: 'the message was a notification' } },
    errors: ['Forbidden', 'NotFound'],
  }),
} as const;
