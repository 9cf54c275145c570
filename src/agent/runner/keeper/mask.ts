// Replaces values of secrets in the output of a program, before it is written anywhere. It finds the values as they are:
// one that is encoded, or split over two lines, is missed.

/** Shorter ones would mask ordinary words. */
const lengthMin = 4;
const shown = Buffer.from('***');

/** Each line of a value counts: output comes line by line. */
export function maskOf(values: readonly string[]): (text: Buffer) => Buffer {
  const lines = values.flatMap((value) => value.split(/\r?\n/)).filter((line) => line.length >= lengthMin);
  // The longest first: a value may be a part of another.
  const wanted = [...new Set(lines)].sort((a, b) => b.length - a.length).map((line) => Buffer.from(line));
  return (text) => wanted.reduce(replaced, text);
}

function replaced(text: Buffer, value: Buffer): Buffer {
  let at = text.indexOf(value);
  if (at < 0) return text;
  const parts: Buffer[] = [];
  let from = 0;
  for (; at >= 0; at = text.indexOf(value, from)) {
    parts.push(text.subarray(from, at), shown);
    from = at + value.length;
  }
  return Buffer.concat([...parts, text.subarray(from)]);
}
