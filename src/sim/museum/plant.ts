// Plant: puts a planted bug into the text of the file it belongs to. Whoever changes that place must say anew where the bug would be.

import type { PlantedBug } from './planted-bugs.ts';

/** `source` with the bug in it. Throws when its place is not there exactly once. */
export function plantedIn(source: string, bug: PlantedBug): string {
  const places = source.split(bug.find).length - 1;
  if (places !== 1) {
    throw new Error(
      `the planted bug "${bug.name}" has ${places === 0 ? 'no place' : `${places} places`} in src/${bug.file}: say in src/sim/museum/planted-bugs.ts where it would be now`,
    );
  }
  return source.replace(bug.find, () => bug.replace);
}
