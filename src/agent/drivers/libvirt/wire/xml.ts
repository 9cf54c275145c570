// XML, as far as libvirt needs it: writes elements, attributes and text with everything escaped, and reads what libvirt answers. Reading is
// strict: no document types, no entities but XML's own five, bounded depth. What it cannot read it refuses, never guesses.

export interface XmlElement {
  readonly name: string;
  readonly attributes: Readonly<Record<string, string>>;
  readonly children: readonly (XmlElement | string)[];
}

/** Text that cannot be written, or that is not the XML that is understood here. */
export class XmlError extends Error {
  override name = 'XmlError';
}

type Value = string | number | undefined;

/** An attribute that is undefined is left away, and so is a child. Throws `XmlError` for a name that cannot be one. */
export function element(
  name: string,
  attributes: Readonly<Record<string, Value>> = {},
  ...children: readonly (XmlElement | Value)[]
): XmlElement {
  for (const each of [name, ...Object.keys(attributes)])
    if (!namePattern.test(each)) throw new XmlError(`"${each}" cannot be a name in XML`);
  return {
    name,
    attributes: Object.fromEntries(
      Object.entries(attributes).flatMap(([key, value]) => (value === undefined ? [] : [[key, String(value)]])),
    ),
    children: children.flatMap((child) =>
      child === undefined ? [] : [typeof child === 'number' ? String(child) : child],
    ),
  };
}

/** Throws `XmlError` for control characters: XML has no way to write them. */
export function writeXml({ name, attributes, children }: XmlElement): string {
  const words = Object.entries(attributes).map(([key, value]) => ` ${key}='${escaped(value, `attribute ${key}`)}'`);
  const inside = children.map((child) =>
    typeof child === 'string' ? escaped(child, `the text of ${name}`) : writeXml(child),
  );
  return inside.length === 0 ? `<${name}${words.join('')}/>` : `<${name}${words.join('')}>${inside.join('')}</${name}>`;
}

const namePattern = /^[A-Za-z_][\w.-]*(:[A-Za-z_][\w.-]*)?$/;
const escapes: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  "'": '&apos;',
  '"': '&quot;',
};
// Beside the control characters: halves of pairs, and the two code points that XML leaves out.
const unwritable = /[\x00-\x1f\x7f-\x9f\ufffe\uffff]|\p{Surrogate}/u;

function escaped(text: string, where: string): string {
  if (unwritable.test(text)) throw new XmlError(`${where} holds a character that cannot be written in XML`);
  return text.replace(/[&<>'"]/g, (character) => escapes[character] ?? character);
}

const depthMax = 64;
const entities: Readonly<Record<string, string>> = { amp: '&', lt: '<', gt: '>', apos: "'", quot: '"' };

/** The one element that `text` is. Comments are passed over. Throws `XmlError`. */
export function readXml(text: string): XmlElement {
  let at = 0;
  const fail = (what: string): never => {
    throw new XmlError(`${what} at character ${at}`);
  };
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    const found = pattern.exec(text);
    if (found !== null) at = pattern.lastIndex;
    return found;
  };
  const readElement = (depth: number): XmlElement => {
    if (depth > depthMax) fail('elements that are nested too deep');
    const name = match(/<([A-Za-z_][\w.:-]*)/y)?.[1] ?? fail('no element');
    const attributes: Record<string, string> = {};
    for (let found = match(attribute); found !== null; found = match(attribute)) {
      const [, key = '', inDouble, inSingle] = found;
      if (Object.hasOwn(attributes, key)) fail(`attribute ${key} twice`);
      Object.defineProperty(attributes, key, {
        value: unescaped(inDouble ?? inSingle ?? ''),
        enumerable: true,
      });
    }
    if (match(/\s*\/>/y) !== null) return { name, attributes, children: [] };
    if (match(/\s*>/y) === null) fail(`element ${name} that does not end`);
    const children: (XmlElement | string)[] = [];
    for (;;) {
      if (match(comment) !== null) continue;
      const words = match(/[^<]+/y)?.[0];
      if (words !== undefined) children.push(unescaped(words));
      else if (match(/<\/([A-Za-z_][\w.:-]*)\s*>/y)?.[1] === name) return { name, attributes, children };
      else children.push(readElement(depth + 1)); // also refuses the end of another element
    }
  };
  const skip = (): void => {
    while (match(/\s+/y) !== null || match(comment) !== null);
  };
  match(/<\?xml [^?<>]*\?>/y);
  skip();
  const root = readElement(1);
  skip();
  if (at < text.length) fail('more than one element');
  return root;
}

const comment = /<!--(?:(?!--)[^])*-->/y;
const attribute = /\s+([A-Za-z_][\w.:-]*)\s*=\s*(?:"([^"<]*)"|'([^'<]*)')/y;

function unescaped(text: string): string {
  return text.replace(/&([^;&]{0,12});?/g, (whole, name: string) => {
    const known = Object.hasOwn(entities, name) ? entities[name] : undefined;
    const number = /^#(?:x([0-9a-fA-F]{1,6})|([0-9]{1,7}))$/.exec(name);
    const code = number === null ? Number.NaN : Number.parseInt(number[1] ?? number[2] ?? '', number[1] ? 16 : 10);
    const character = known ?? (code <= 0x10_ffff ? String.fromCodePoint(code) : undefined);
    if (character === undefined || !whole.endsWith(';')) throw new XmlError(`the entity "${whole}" is not known`);
    return character;
  });
}

/** The elements at the end of `path`, in order. */
export function elementsAt(from: XmlElement, ...path: readonly string[]): readonly XmlElement[] {
  return path.reduce<readonly XmlElement[]>(
    (found, name) =>
      found.flatMap(({ children }) =>
        children.filter((child): child is XmlElement => typeof child !== 'string' && child.name === name),
      ),
    [from],
  );
}
