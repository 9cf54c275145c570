// Which Debian packages each part needs, and why: the one list, debian-packages.json, for scripts that run before anything is installed.

import { readFileSync } from 'node:fs';

/** The packages of the named groups, each once. */
export function debianPackages(...groups) {
  const known = JSON.parse(readFileSync(new URL('debian-packages.json', import.meta.url), 'utf8'));
  const chosen = new Map(groups.flatMap((group) => known[group]).map((entry) => [entry.name, entry]));
  return [...chosen.values()];
}
