// Text of other systems on its way into messages: one line, without what a terminal obeys, and without secrets.

// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const sequence = /\u001b\[[0-?]*[ -/]*[@-~]/g;
// biome-ignore lint/suspicious/noControlCharactersInRegex: likewise
const steering = /[\s\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+/g;

export function plainLine(text: string, lengthMax: number): string {
  const plain = text.replace(sequence, '').replace(steering, ' ').trim();
  return plain.length <= lengthMax ? plain : `${plain.slice(0, lengthMax - 1)}…`;
}

export type Hide = (text: string) => string;

/** A function that blanks out these values, and each line of those that have several. What is shorter than 4 characters stays. */
export function hiding(secrets: readonly string[]): Hide {
  const parts = secrets.flatMap((secret) => [secret, ...secret.split('\n')]).filter((part) => part.trim().length >= 4);
  const longestFirst = parts.toSorted((a, b) => b.length - a.length);
  return (text) => longestFirst.reduce((shown, part) => shown.replaceAll(part, '***'), text);
}
