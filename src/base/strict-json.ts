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
  // Before JSON.parse, for that may use the stack.
  const structure = faultOfStructure(text);
  if (structure) return structure;
  try {
    return { ok: true, value: JSON.parse(text) };
  } catch {
    return fault('NotJson', 'it is not valid JSON'); // the parser's own message quotes the text
  }
}

function fault(reason: StrictJsonFault, message: string): StrictJson {
  return { ok: false, reason, message };
}

/** Strings and what gives structure; everything else, also what is not JSON, is skipped. */
const token = /"(?:[^"\\]|\\.)*"|[{}[\]:,]/gs;

function faultOfStructure(text: string): StrictJson | undefined {
  /** The keys of each open object; null for an array. */
  const open: (Set<string> | null)[] = [];
  let last = '';
  for (const [part] of text.matchAll(token)) {
    if (part === '{' || part === '[') {
      open.push(part === '{' ? new Set() : null);
      if (open.length > depthMax) return fault('TooDeep', `objects and arrays may be ${depthMax} deep`);
    } else if (part === '}' || part === ']') {
      open.pop();
    } else if (part === ':') {
      const keys = open.at(-1);
      const key = keyOf(last);
      if (keys?.has(key)) return fault('DuplicateKey', `an object has the key "${printable(key)}" twice`);
      keys?.add(key);
    }
    last = part;
  }
  return undefined;
}

/** `"\u0061"` is the key `a` too. */
function keyOf(quoted: string): string {
  try {
    return String(JSON.parse(quoted));
  } catch {
    return quoted; // not JSON: JSON.parse of the whole text refuses it
  }
}

function printable(text: string): string {
  return text.slice(0, 80).replace(/[^\x20-\x7e]/g, '?');
}
