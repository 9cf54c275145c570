// The documentation site: what a page has, and which links lead nowhere.

import { describe, expect, it } from 'vitest';
import { deadLinks } from '../scripts/docs-site/dead-links.ts';
import { readPage, Slugs, targetOf } from '../scripts/docs-site/page.ts';

describe('a page', () => {
  it('has its title, its headings and its links', () => {
    const page = readPage(
      'docs/a.md',
      '# A `b`\n\nSee [c](c.md#d).\n\n## What, then?\n\n| x |\n|---|\n| [y](y.md) |\n',
    );
    expect(page).toMatchObject({ target: 'a.html', title: 'A b', links: ['c.md#d', 'y.md'] });
    expect([...page.anchors]).toEqual(['a-b', 'what-then']);
    expect(page.sections[1]?.text).toContain('y');
  });

  it.each([
    ['README.md', 'index.html'],
    ['docs/jobs.md', 'jobs.html'],
    ['docs/decisions/README.md', 'decisions/index.html'],
    ['CONTRIBUTING.md', 'CONTRIBUTING.html'],
  ])('%s is at %s', (source, target) => expect(targetOf(source)).toBe(target));

  it('tells headings of the same text apart', () => {
    const slugs = new Slugs();
    expect([slugs.next('Limits'), slugs.next('Limits'), slugs.next('`berth ps`')]).toEqual([
      'limits',
      'limits-1',
      'berth-ps',
    ]);
  });
});

describe('a link is dead', () => {
  const pages = (text: string) => [readPage('docs/a.md', text), readPage('docs/b.md', '# B\n\n## Part one\n')];
  const dead = (text: string) => deadLinks(pages(text), (path) => path === 'LICENSE');
  it.each([
    ['a page', '[x](b.md)', []],
    ['a heading', '[x](b.md#part-one)', []],
    ['a file of the repository', '[x](../LICENSE)', []],
    ['another site', '[x](https://example.com/none)', []],
    ['an address', '[x](mailto:a@example.com)', []],
    ['no page', '[x](c.md)', ['docs/a.md: c.md is not there']],
    ['no heading', '[x](b.md#part-two)', ['docs/a.md: b.md#part-two has no such heading']],
    ['no heading of its own', '# A\n\n[x](#b)', ['docs/a.md: #b has no such heading']],
  ])('or not: to %s', (_, text, faults) => expect(dead(text)).toEqual(faults));
});
