// The routes of MCP over streamable HTTP. What they answer is the protocol's, and that of OAuth, not ours.

import { Type } from 'typebox';
import { anyObject, json, route } from './route.ts';

const ProtectedResource = Type.Object(
  {
    resource: Type.String({ description: 'the URL of MCP here: the audience of access tokens' }),
    authorization_servers: Type.Array(Type.String(), { description: 'issuers of access tokens' }),
    scopes_supported: Type.Array(Type.String()),
    bearer_methods_supported: Type.Array(Type.Literal('header')),
    resource_name: Type.String(),
  },
  { additionalProperties: false, description: 'as RFC 9728 has it' },
);

export const mcpRoutes = {
  mcpResource: route({
    id: 'mcpResource',
    tag: 'mcp',
    method: 'GET',
    path: '/.well-known/oauth-protected-resource/mcp',
    access: 'open',
    summary: 'Say which providers give access tokens for MCP (RFC 9728)',
    answers: { 200: json(ProtectedResource, 'what a client needs to get an access token') },
    errors: ['NotFound'],
  }),
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
