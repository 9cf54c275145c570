// Cuts a stream of bytes into lines of JSON. What is too long or no JSON is passed over: nobody may fill our memory with one line.

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
    return undefined; // as good as a line that says nothing
  }
}
