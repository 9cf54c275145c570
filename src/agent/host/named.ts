// Messages of drivers and files speak of guests and volumes by id, for that is all they know. Their readers know names: here
// one becomes the other, on the way out of the agent. An id in a path, or in the name of something on the host, stays.

export type NameOf = (id: string) => string | undefined;

const idPattern = /(?<![\w./-])("?)((?:inst|vol)_[0-9a-z]{26})("?)(?![\w/-]|\.\w)/g;

export function named(text: string, nameOf: NameOf): string {
  return text.replace(idPattern, (whole: string, _before: string, id: string) => {
    const name = nameOf(id);
    return name === undefined ? whole : `"${name}"`;
  });
}

/** A report as it is told: `message` and `progress` are for people. */
export function withNames<T extends object>(report: T, nameOf: NameOf): T {
  const texts = Object.entries(report).filter(
    (entry): entry is [string, string] =>
      (entry[0] === 'message' || entry[0] === 'progress') && typeof entry[1] === 'string',
  );
  return texts.length === 0
    ? report
    : { ...report, ...Object.fromEntries(texts.map(([key, text]) => [key, named(text, nameOf)])) };
}
