// The files of the page /docs: two of the library, which are read when they are asked for, and our own few lines.

import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { ApiError } from '../../../api/errors.ts';

export interface DocsFile {
  readonly type: string;
  read(): Promise<Uint8Array>;
}

const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Berth API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/docs/swagger-ui.css">
</head>
<body>
<div id="docs"></div>
<noscript>This page needs JavaScript. The API is described in <a href="/openapi.json">/openapi.json</a>.</noscript>
<script src="/docs/swagger-ui-bundle.js"></script>
<script src="/docs/start.js"></script>
</body>
</html>
`;

const start = `window.ui = SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#docs',
  deepLinking: true,
  docExpansion: 'none',
  filter: true,
  validatorUrl: null,
  persistAuthorization: false,
  presets: [SwaggerUIBundle.presets.apis],
  layout: 'BaseLayout',
});
`;

export const docsPage: DocsFile = ours('text/html; charset=utf-8', html);

export const docsFiles: ReadonlyMap<string, DocsFile> = new Map([
  ['start.js', ours('text/javascript; charset=utf-8', start)],
  ['swagger-ui-bundle.js', ofLibrary('swagger-ui-bundle.js', 'text/javascript; charset=utf-8')],
  ['swagger-ui.css', ofLibrary('swagger-ui.css', 'text/css; charset=utf-8')],
]);

function ours(type: string, text: string): DocsFile {
  return { type, read: () => Promise.resolve(Buffer.from(text)) };
}

/** In a built package the files are beside the program (scripts/build.ts). */
function ofLibrary(name: string, type: string): DocsFile {
  const places = [() => new URL(`../swagger-ui/${name}`, import.meta.url), () => inPackage(name)];
  return {
    type,
    async read() {
      for (const place of places) {
        const bytes = await readFile(place()).catch(() => undefined);
        if (bytes !== undefined) return bytes;
      }
      throw new ApiError('NotFound', `${name} was not installed with this server; /openapi.json describes the API`);
    },
  };
}

function inPackage(name: string): string {
  try {
    return createRequire(import.meta.url).resolve(`swagger-ui-dist/${name}`);
  } catch {
    return '';
  }
}
