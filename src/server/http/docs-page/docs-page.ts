// `/docs`: the API as a page, with Swagger UI. Everything comes from this server, so that it works without the Internet, and the browser is
// told to load nothing from elsewhere. A token that is typed in stays in the page's memory.

import { ApiError } from '../../../api/errors.ts';
import { docsPageRoutes as routes } from '../../../api/routes/docs-page.ts';
import { bind } from '../routes/bind.ts';
import { type Answer, bytesAnswer, type Route } from '../route.ts';
import { type DocsFile, docsFiles, docsPage } from './docs-files.ts';

export function docsPageRoute(): Route[] {
  return [
    bind(routes.page, () => answerOf(docsPage)),
    bind(routes.file, ({ params }) => {
      const file = docsFiles.get(params.file);
      if (file === undefined) throw new ApiError('NotFound', `there is no file "${params.file.slice(0, 80)}" in /docs`);
      return answerOf(file);
    }),
  ];
}

/** `data:` is for the pictures in the style sheet; the library sets styles of single elements. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

async function answerOf({ type, read }: DocsFile): Promise<Answer> {
  const bytes = await read();
  return bytesAnswer(200, bytes, {
    'content-type': type,
    'content-length': String(bytes.byteLength),
    'content-security-policy': policy,
    'x-content-type-options': 'nosniff',
    'referrer-policy': 'no-referrer',
    'cache-control': 'no-cache',
  });
}
