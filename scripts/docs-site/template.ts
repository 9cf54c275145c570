// How a page of the documentation looks: the list of pages at the side, the search above it. Everything comes from the site itself.

import { Marked } from 'marked';
import { posix } from 'node:path';
import { type DocsPage, Slugs, targetOf } from './page.ts';

export interface NavGroup {
  readonly title: string;
  readonly pages: readonly DocsPage[];
}

export function htmlOf(page: DocsPage, groups: readonly NavGroup[], known: ReadonlySet<string>): string {
  const root = page.target.includes('/') ? '../' : './';
  const nav = groups.map(
    ({ title, pages }) =>
      `<p>${escaped(title)}</p><ul>${pages
        .map(
          (each) =>
            `<li><a href="${root}${each.target}"${each === page ? ' aria-current="page"' : ''}>${escaped(each.title)}</a></li>`,
        )
        .join('')}</ul>`,
  );
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${escaped(page.title)} · Berth</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${root}site.css">
</head>
<body data-root="${root}">
<nav aria-label="Pages">
<a class="home" href="${root}index.html">Berth</a>
<label>Search <input type="search" id="search" autocomplete="off"></label>
<ol id="found" aria-live="polite"></ol>
${nav.join('\n')}
</nav>
<main>
${bodyOf(page, known)}
</main>
<script src="${root}site.js"></script>
</body>
</html>
`;
}

function bodyOf(page: DocsPage, known: ReadonlySet<string>): string {
  const slugs = new Slugs();
  const renderer = new Marked({
    renderer: {
      heading({ tokens, depth, text }) {
        const anchor = slugs.next(text);
        return `<h${depth} id="${escaped(anchor)}">${this.parser.parseInline(tokens)} <a class="anchor" href="#${escaped(anchor)}" aria-label="Link to this section">#</a></h${depth}>\n`;
      },
      link({ href, tokens }) {
        return `<a href="${escaped(hrefOf(href, page, known))}">${this.parser.parseInline(tokens)}</a>`;
      },
      html: ({ text }) => escaped(text), // our pages have none
    },
  });
  return renderer.parser([...page.tokens]);
}

/** A link to another page of the documentation leads to its place on the site; one to a file stays what it says. */
function hrefOf(href: string, page: DocsPage, known: ReadonlySet<string>): string {
  if (/^[a-z][a-z0-9+.-]*:|^#/i.test(href)) return href;
  const [path = '', anchor] = href.split('#', 2);
  const source = posix.join(posix.dirname(page.source), path);
  if (!known.has(source)) return href;
  const target = posix.relative(posix.dirname(page.target), targetOf(source));
  return anchor === undefined ? target : `${target}#${anchor}`;
}

function escaped(text: string): string {
  const codes: Readonly<Record<string, string>> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };
  return text.replace(/[&<>"]/g, (char) => codes[char] ?? char);
}
