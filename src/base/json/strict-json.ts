// JSON for foreign bytes: valid UTF-8 without a byte order mark, no key twice in one object, and not too deep. JSON.parse
// alone keeps the last of two equal keys, so that two readers of one message may see two messages.

export type StrictJson =
  | { readonly ok: true; readonly value: unknown }
  | { readonly ok: false; readonly reason: StrictJsonFault; readonly message: string };

export type StrictJsonFault = 'NotUtf8' | 'NotJson' | 'DuplicateKey' | 'TooDeep';

/** Objects and arrays within one another. */
const depthMax = 32;

export function parseStrictJson(bytes: Uint8Array): StrictJson {
  if (bytes.length === 0) return fault('NotJson', 'it is empty');
  let text: string;
  try {
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes);
  } catch {
    return fault('NotUtf8', 'it is not valid UTF-8');
  }
  if (text.startsWith('\ufeff')) return fault('NotJson', 'it begins with a byte order mark; JSON has none');
  const { colons, deep } = shapeOf(text);
  if (deep) return fault('TooDeep', `objects and arrays may be ${depthMax} deep`); // before JSON.parse, which may use the stack
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return fault('NotJson', 'it is not valid JSON'); // the parser's own message quotes the text
  }
  // A key that was given twice stands in the text twice, and in the value once.
  return keysIn(value) === colons ? { ok: true, value } : duplicateIn(text);
}

function fault(reason: StrictJsonFault, message: string): StrictJson {
  return { ok: false, reason, message };
}

/** Colons outside of strings, and whether it is too deep. Of a text that is not JSON it may be anything. */
function shapeOf(text: string): { readonly colons: number; readonly deep: boolean } {
  let colons = 0;
  let depth = 0;
  let quoted = false;
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i);
    if (quoted) {
      if (code === backslash) i += 1;
      else if (code === quote) quoted = false;
    } else if (code === quote) quoted = true;
    else if (code === colon) colons += 1;
    else if (code === openBrace || code === openBracket) {
      depth += 1;
      if (depth > depthMax) return { colons, deep: true };
    } else if (code === closeBrace || code === closeBracket) depth -= 1;
  }
  return { colons, deep: false };
}

const [quote, backslash, colon] = [0x22, 0x5c, 0x3a];
const [openBrace, closeBrace, openBracket, closeBracket] = [0x7b, 0x7d, 0x5b, 0x5d];

function keysIn(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  let count = Array.isArray(value) ? 0 : Object.keys(value).length;
  for (const each of Object.values(value)) count += keysIn(each);
  return count;
}

/** Strings and what gives structure. */
const token = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/gs;

/** Names the key. */
function duplicateIn(text: string): StrictJson {
  /** The keys of each open object; null for an array. */
  const open: (Set<string> | null)[] = [];
  let last = '';
  for (const [part] of text.matchAll(token)) {
    if (part === '{' || part === '[') open.push(part === '{' ? new Set() : null);
    else if (part === '}' || part === ']') open.pop();
    else if (part === ':') {
      const keys = open.at(-1);
      const key = keyOf(last);
      if (keys?.has(key)) return fault('DuplicateKey', `an object has the key "${printable(key)}" twice`);
      keys?.add(key);
    }
    last = part;
  }
  return fault('DuplicateKey', 'an object has a key twice');
}

/** `"\u0061"` is the key `a` too. */
function keyOf(quoted: string): string {
  return String(JSON.parse(quoted));
}

function printable(text: string): string {
  return text.slice(0, 80).replace(/[^\x20-\x7e]/g, '?');
}
