// Serves the dashboard: its page at `/` and at every address below `/ui/`, for the page's own router. Open to everyone, as it holds
// nothing of the fleet; all that it shows comes from the API. The browser is told to load nothing from elsewhere, and to run no script
// that stands in the page.

import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from '../../api/errors.ts';
import { sendError } from '../http/send-answer.ts';
import type { Logger } from '../../base/log.ts';
import type { WebFiles } from './web-files.ts';

interface WebParts {
  readonly files: WebFiles;
  /** Unpredictable, base64. */
  readonly newNonce: () => string;
  readonly log: Logger;
}

export function serveWeb(app: FastifyInstance, { files, newNonce, log }: WebParts): void {
  const page = async (_request: FastifyRequest, reply: FastifyReply): Promise<void> => {
    const nonce = newNonce();
    const text = (await files.page()) ?? notBuilt;
    const body = Buffer.from(text.replaceAll('__NONCE__', nonce));
    reply.hijack();
    reply.raw.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'content-length': body.byteLength,
      'content-security-policy': policyOf(nonce),
      ...pageHeaders,
    });
    reply.raw.end(body);
  };
  app.get('/', page);
  app.get('/ui', page);
  app.get('/ui/*', page);
  app.get<{ Params: { '*': string } }>('/ui/assets/*', async (request, reply) => {
    const file = await files.asset(request.params['*'], request.headers['accept-encoding'] ?? '');
    if (file === undefined)
      return sendError(
        new ApiError('NotFound', 'the dashboard has no such file; reload the page'),
        request,
        reply,
        log,
      );
    reply.hijack();
    reply.raw.writeHead(200, {
      'content-type': file.type,
      'content-length': file.bytes.byteLength,
      ...(file.encoding === undefined ? {} : { 'content-encoding': file.encoding }),
      'cache-control': 'public, max-age=31536000, immutable',
      vary: 'accept-encoding',
      ...safeHeaders,
    });
    reply.raw.end(file.bytes);
  });
}

/** Styles by nonce; single elements get theirs from scripts, through the object model, which needs no permission. */
function policyOf(nonce: string): string {
  return [
    "default-src 'none'",
    "script-src 'self'",
    `style-src-elem 'self' 'nonce-${nonce}'`,
    "style-src-attr 'none'",
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "worker-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ');
}

const safeHeaders = {
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-resource-policy': 'same-origin',
} as const;

const pageHeaders = {
  ...safeHeaders,
  'cache-control': 'no-store', // each has its own nonce
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
} as const;

const notBuilt = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Berth</title></head>
<body>
<h1>Berth</h1>
<p>This server runs, but its dashboard was not built. In a checkout, run <code>npm run build:web</code> and reload this page.</p>
<p>The API is described in <a href="/docs">/docs</a>.</p>
</body>
</html>
`;
