// Merges the output of several writers into one stream of complete lines, each after its writer's name if there is more than one.
// Pure.

/** For one guest's log. The function takes the next bytes of one writer and returns the bytes for the log. */
export function createLineMixer(named: boolean): (name: string, data: Buffer) => Buffer {
  const unfinished = new Set<string>(); // writers whose last line is incomplete
  let last: string | undefined;
  return (name, data) => {
    if (!named) return data;
    const pieces: Buffer[] = [];
    if (last !== undefined && last !== name && unfinished.delete(last)) pieces.push(newline);
    last = name;
    let from = 0;
    while (from < data.length) {
      const end = data.indexOf(lineFeed, from);
      const to = end < 0 ? data.length : end + 1;
      if (!unfinished.has(name)) pieces.push(Buffer.from(`${name}: `));
      pieces.push(data.subarray(from, to));
      if (end < 0) unfinished.add(name);
      else unfinished.delete(name);
      from = to;
    }
    return Buffer.concat(pieces);
  };
}

const lineFeed = 0x0a;
const newline = Buffer.from('\n');
