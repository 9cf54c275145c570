// The files of a tar archive: ustar, with the long names of GNU tar and of pax. Directories and links are left out. Pure.

export interface TarFile {
  readonly name: string;
  readonly bytes: Uint8Array;
}

const blockBytes = 512;
const text = new TextDecoder();

/** Throws when the archive is not whole, or is none. */
export function tarFiles(archive: Uint8Array): TarFile[] {
  const files: TarFile[] = [];
  let longName: string | undefined;
  for (let at = 0; at + blockBytes <= archive.length; ) {
    const head = archive.subarray(at, at + blockBytes);
    if (head.every((byte) => byte === 0)) break;
    const size = sizeIn(head);
    const bytes = archive.subarray(at + blockBytes, at + blockBytes + size);
    if (bytes.length < size) throw new Error('the archive is not whole');
    at += blockBytes * (1 + Math.ceil(size / blockBytes));
    const type = String.fromCharCode(head[156] ?? 0);
    if (type === 'L') longName = stringIn(bytes);
    else if (type === 'x') longName = paxPath(bytes) ?? longName;
    else {
      if (type === '0' || type === '\0') files.push({ name: longName ?? nameIn(head), bytes });
      if (type !== 'g') longName = undefined; // what is said globally is not of the next file
    }
  }
  return files;
}

function sizeIn(head: Uint8Array): number {
  const field = head.subarray(124, 136);
  // GNU tar writes what eleven octal digits cannot hold in base 256.
  if ((field[0] ?? 0) & 0x80) return field.subarray(4).reduce((sum, byte) => sum * 256 + byte, 0);
  const size = Number.parseInt(stringIn(field).trim() || '0', 8);
  if (!Number.isSafeInteger(size) || size < 0) throw new Error('this is no tar archive');
  return size;
}

function nameIn(head: Uint8Array): string {
  const name = stringIn(head.subarray(0, 100));
  const isUstar = stringIn(head.subarray(257, 263)).startsWith('ustar');
  const prefix = isUstar && head[263] === 0x30 ? stringIn(head.subarray(345, 500)) : '';
  return prefix === '' ? name : `${prefix}/${name}`;
}

/** Records of `LENGTH path=NAME\n`. */
function paxPath(bytes: Uint8Array): string | undefined {
  for (let at = 0; at < bytes.length; ) {
    const space = bytes.indexOf(0x20, at);
    const length = Number(text.decode(bytes.subarray(at, space)));
    if (space < 0 || !Number.isSafeInteger(length) || length <= 0) return undefined;
    const record = text.decode(bytes.subarray(space + 1, at + length - 1));
    if (record.startsWith('path=')) return record.slice('path='.length);
    at += length;
  }
  return undefined;
}

function stringIn(bytes: Uint8Array): string {
  const end = bytes.indexOf(0);
  return text.decode(end < 0 ? bytes : bytes.subarray(0, end));
}
