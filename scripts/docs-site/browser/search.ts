// The search of the documentation, in the browser: the index is loaded when the first letter is typed.

import MiniSearch from 'minisearch';
import { searchOptions } from './search-options.ts';

interface Section {
  readonly id: number;
  readonly page: string;
  readonly target: string;
  readonly title: string;
}

const field = document.querySelector<HTMLInputElement>('#search');
const found = document.querySelector('#found');
const root = document.body.dataset['root'] ?? './';
let loading: Promise<MiniSearch<Section>> | undefined;

field?.addEventListener('input', () => void show(field.value.trim()));

async function show(words: string): Promise<void> {
  const index = await (loading ??= load());
  const hits =
    words === '' ? [] : index.search(words, { prefix: true, fuzzy: 0.15, boost: { title: 3, page: 2 } }).slice(0, 12);
  found?.replaceChildren(
    ...hits.map((hit) => {
      const link = Object.assign(document.createElement('a'), {
        href: `${root}${String(hit['target'])}`,
        textContent:
          hit['title'] === hit['page'] ? String(hit['page']) : `${String(hit['page'])}: ${String(hit['title'])}`,
      });
      const item = document.createElement('li');
      item.append(link);
      return item;
    }),
  );
}

/** By a script, not by `fetch`: the site can be opened from a disk, too. */
async function load(): Promise<MiniSearch<Section>> {
  const script = Object.assign(document.createElement('script'), { src: `${root}search-index.js` });
  const loaded = new Promise((resolve, reject) => {
    script.addEventListener('load', resolve);
    script.addEventListener('error', () => reject(new Error('the index of the search is missing')));
  });
  document.head.append(script);
  await loaded;
  return MiniSearch.loadJSON<Section>(String(Reflect.get(window, 'docsSearchIndex')), searchOptions);
}
