// Plant: puts a planted bug into the text of the file it belongs to. A change of that place must also change the bug's entry.

/** A change of one place. */
export interface Planted {
  readonly name: string;
  /** Below src/. */
  readonly file: string;
  readonly find: string;
  readonly replace: string;
}

/** `source` with the bug in it. Throws when its place is not there exactly once. */
export function plantedIn(source: string, bug: Planted): string {
  const places = source.split(bug.find).length - 1;
  if (places !== 1) {
    throw new Error(
      `the planted bug "${bug.name}" has ${places === 0 ? 'no place' : `${places} places`} in src/${bug.file}: say in src/sim/museum/ where it would be now`,
    );
  }
  return source.replace(bug.find, () => bug.replace);
}
