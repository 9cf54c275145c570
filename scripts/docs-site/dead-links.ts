// Links between pages that lead nowhere. Links to other sites are not followed: the check needs no network.

import { posix } from 'node:path';
import type { DocsPage } from './page.ts';

/** As `docs/a.md: [b.md#c] has no such heading`. `exists`: whether the repository has this file or folder. */
export function deadLinks(pages: readonly DocsPage[], exists: (path: string) => boolean): readonly string[] {
  const bySource = new Map(pages.map((page) => [page.source, page]));
  return pages.flatMap((page) =>
    page.links.flatMap((link) => {
      if (/^[a-z][a-z0-9+.-]*:/i.test(link)) return [];
      const [path = '', anchor] = link.split('#', 2);
      const source = path === '' ? page.source : posix.join(posix.dirname(page.source), decodeURIComponent(path));
      const target = bySource.get(source);
      if (target === undefined) return exists(source) ? [] : [`${page.source}: ${link} is not there`];
      if (anchor === undefined || target.anchors.has(anchor)) return [];
      return [`${page.source}: ${link} has no such heading`];
    }),
  );
}
