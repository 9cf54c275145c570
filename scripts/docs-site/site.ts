// `npm run docs`: the documentation as a site in dist-docs/, with a search, from the Markdown files of the repository. It needs no
// network, and the site none but its own files. With `--check` it writes nothing and only looks for links that lead nowhere.

import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import MiniSearch from 'minisearch';
import { deadLinks } from './dead-links.ts';
import { type DocsPage, readPage } from './page.ts';
import { searchOptions } from './browser/search-options.ts';
import { htmlOf, type NavGroup } from './template.ts';

const root = fileURLToPath(new URL('../..', import.meta.url));
const out = join(root, 'dist-docs');

const markdownIn = (folder: string): string[] =>
  readdirSync(join(root, folder))
    .filter((name) => name.endsWith('.md'))
    .map((name) => (folder === '.' ? name : `${folder}/${name}`));
const pages = [
  ...markdownIn('.'),
  ...markdownIn('docs'),
  ...markdownIn('docs/layouts'),
  ...markdownIn('docs/decisions'),
].map((source) => readPage(source, readFileSync(join(root, source), 'utf8')));

const dead = deadLinks(pages, (path) => existsSync(join(root, path)));
for (const fault of dead) process.stderr.write(`${fault}\n`);
if (dead.length > 0) process.exitCode = 1;
else if (!process.argv.includes('--check')) await write();

async function write(): Promise<void> {
  const groups = groupsOf(pages);
  const known = new Set(pages.map(({ source }) => source));
  rmSync(out, { recursive: true, force: true });
  for (const page of pages) {
    const path = join(out, page.target);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, htmlOf(page, groups, known));
  }
  cpSync(join(root, 'scripts/docs-site/site.css'), join(out, 'site.css'));
  if (existsSync(join(root, 'docs/screenshots')))
    cpSync(join(root, 'docs/screenshots'), join(out, 'screenshots'), { recursive: true });
  cpSync(join(root, 'docs/openapi.json'), join(out, 'openapi.json'));
  await build({
    entryPoints: [join(root, 'scripts/docs-site/browser/search.ts')],
    outfile: join(out, 'site.js'),
    bundle: true,
    minify: true,
    format: 'iife',
    logLevel: 'warning',
  });
  const index = JSON.stringify(JSON.stringify(indexOf(pages)));
  writeFileSync(join(out, 'search-index.js'), `window.docsSearchIndex = ${index};\n`);
  process.stderr.write(`dist-docs/index.html: ${pages.length} pages\n`);
}

/** In the order of the README's table; what it does not name comes last. */
function groupsOf(all: readonly DocsPage[]): readonly NavGroup[] {
  const readme = all.find(({ source }) => source === 'README.md');
  const rank = (page: DocsPage): number => {
    const at = readme?.links.findIndex((link) => link === page.source) ?? -1;
    return at < 0 ? Number.MAX_SAFE_INTEGER : at;
  };
  const guides = all.filter(({ source }) => /^docs\/(layouts\/)?[^/]+$/.test(source)).sort((a, b) => rank(a) - rank(b));
  return [
    { title: 'Guides', pages: guides },
    { title: 'Project', pages: all.filter(({ source }) => !source.startsWith('docs/')) },
    { title: 'Design decisions', pages: all.filter(({ source }) => source.startsWith('docs/decisions/')) },
  ];
}

function indexOf(all: readonly DocsPage[]): MiniSearch {
  const index = new MiniSearch(searchOptions);
  let id = 0;
  for (const page of all)
    for (const { anchor, title, text } of page.sections)
      index.add({ id: id++, page: page.title, target: `${page.target}#${anchor}`, title, text });
  return index;
}
