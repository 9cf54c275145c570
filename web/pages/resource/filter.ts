// The filter of a list: words that must all fit. `web` is a part of the name; `project=a` and `tier=db` are exact, `tier!=db` its
// opposite.

import type { Metadata } from '../../../src/api/resources/metadata.ts';

type Named = Pick<Metadata, 'name' | 'project' | 'labels'>;

export function matches(metadata: Named, filter: string): boolean {
  return filter
    .split(/[\s,]+/)
    .filter((word) => word !== '')
    .every((word) => fits(metadata, word));
}

function fits({ name, project, labels }: Named, word: string): boolean {
  const [, key, not, value] = /^([^=!]+)(!?)=(.*)$/.exec(word) ?? [];
  if (key === undefined) return name.toLowerCase().includes(word.toLowerCase());
  const found = key === 'project' ? project : key === 'name' ? name : labels[key];
  return (found === value) !== (not === '!');
}
