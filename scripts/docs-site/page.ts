// A page of the documentation: its text, and what other pages may link to in it.

import { type MarkedToken, marked, type Token } from 'marked';

export interface DocsPage {
  /** In the repository: `docs/jobs.md`. */
  readonly source: string;
  /** On the site: `jobs.html`. */
  readonly target: string;
  readonly title: string;
  readonly tokens: readonly Token[];
  /** What stands after # in links to it. */
  readonly anchors: ReadonlySet<string>;
  readonly links: readonly string[];
  /** By section, for the search. */
  readonly sections: readonly { readonly anchor: string; readonly title: string; readonly text: string }[];
}

export function readPage(source: string, markdown: string): DocsPage {
  const tokens = marked.lexer(markdown);
  const slugs = new Slugs();
  const sections: { anchor: string; title: string; text: string }[] = [];
  const links: string[] = [];
  void marked.walkTokens(tokens, (token) => {
    if (token.type === 'link') links.push(String(token['href']));
  });
  for (const token of tokens as MarkedToken[]) {
    if (token.type === 'heading') sections.push({ anchor: slugs.next(token.text), title: plain(token.text), text: '' });
    const last = sections.at(-1);
    if (last && token.type !== 'heading') last.text += `${plain('raw' in token ? token.raw : '')} `;
  }
  const title = sections[0]?.title ?? source;
  return {
    source,
    target: targetOf(source),
    title,
    tokens,
    anchors: new Set(sections.map(({ anchor }) => anchor)),
    links,
    sections,
  };
}

/** `docs/decisions/0001-a.md` → `decisions/0001-a.html`; README.md is the first page. */
export function targetOf(source: string): string {
  if (source === 'README.md') return 'index.html';
  return source
    .replace(/^docs\//, '')
    .replace(/README\.md$/, 'index.md')
    .replace(/\.md$/, '.html');
}

/** Anchors of headings, as the forges make them: the second of the same text ends with -1. */
export class Slugs {
  readonly #seen = new Map<string, number>();

  next(heading: string): string {
    const slug = plain(heading)
      .toLowerCase()
      .replace(/[^\p{L}\p{N} _-]/gu, '')
      .replaceAll(' ', '-');
    const count = this.#seen.get(slug) ?? 0;
    this.#seen.set(slug, count + 1);
    return count === 0 ? slug : `${slug}-${count}`;
  }
}

/** Without the marks of Markdown. */
function plain(text: string): string {
  return text.replace(/\[([^\]]*)\]\([^)]*\)/g, '$1').replace(/[`*]/g, '');
}
