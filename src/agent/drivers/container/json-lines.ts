// Splits a stream of bytes into lines of JSON. Lines that are too long or not JSON are skipped, so that one line cannot fill the
// memory.

const lineBytesMax = 1024 * 1024;

export async function* jsonLines(pieces: AsyncIterable<Buffer>): AsyncGenerator {
  let rest = '';
  let tooLong = false;
  const decoder = new TextDecoder();
  for await (const piece of pieces) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n');
    rest = lines.pop() ?? '';
    for (const line of lines) {
      if (!tooLong && line.trim() !== '') yield parsed(line);
      tooLong = false;
    }
    if (rest.length > lineBytesMax) {
      rest = '';
      tooLong = true;
    }
  }
  if (!tooLong && rest.trim() !== '') yield parsed(rest);
}

function parsed(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined; // skipped like an empty line
  }
}
