// Text from users and guests on its way to a language model: cleaned of what a terminal would obey, cut to size, and always inside a
// field called "untrusted", so that no name, label or log line can pass for an instruction of ours.

/** Of one result, as JSON text: what a model can read without losing the rest of its conversation. */
export const resultBytesMax = 32_768;

/** Of one text inside a result. */
const textLengthMax = 4_096;

// The sequences that ECMA-48 calls CSI and OSC, and the other control characters except tab and line feed.
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what this removes
const controls =
  /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(?:\u0007|\u001b\\)?|[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/g;
/** Characters that show text in another order or not at all. */
const invisible = /[\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

export function cleanText(text: string, lengthMax = textLengthMax): string {
  const clean = text.replace(controls, '').replace(invisible, '');
  return clean.length <= lengthMax
    ? clean
    : `${clean.slice(0, lengthMax)}… (${clean.length - lengthMax} characters more)`;
}

/** The same value with every text and key cleaned. */
export function cleanValue(value: unknown): unknown {
  if (typeof value === 'string') return cleanText(value);
  if (Array.isArray(value)) return value.map(cleanValue);
  if (typeof value === 'object' && value !== null)
    return Object.fromEntries(Object.entries(value).map(([key, each]) => [cleanText(key, 256), cleanValue(each)]));
  return value;
}

/** The longest beginning of `items` that fits, at least one. */
export function fitting<T>(items: readonly T[], bytesMax = resultBytesMax - 2_048): readonly T[] {
  let bytes = 0;
  let count = 0;
  for (const item of items) {
    bytes += Buffer.byteLength(JSON.stringify(item)) + 1;
    if (bytes > bytesMax && count > 0) break;
    count += 1;
  }
  return items.slice(0, count);
}

/** The last lines of a text, whole ones, that fit. */
export function lastLines(text: string, lines: number, bytesMax = resultBytesMax - 4_096): string {
  const all = text.replace(/\n$/, '').split('\n').slice(-lines);
  while (all.length > 1 && Buffer.byteLength(all.join('\n')) > bytesMax) all.shift();
  const [only = ''] = all;
  return all.length === 1 ? only.slice(-bytesMax) : all.join('\n');
}
