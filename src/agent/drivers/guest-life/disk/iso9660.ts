// Writes a small ISO 9660 image with Joliet names, for cloud-init seeds: files in the root directory only. Equal input
// gives equal bytes: no time, no randomness. Layout in sectors: 16 primary descriptor, 17 Joliet descriptor, 18 terminator,
// 19-22 path tables (little and big endian of each), 23 and 24 root directories, 25 on the files (ECMA-119).

const sectorBytes = 2048;

export interface IsoFile {
  readonly name: string;
  readonly data: Uint8Array;
}

interface Placed {
  readonly name: string;
  readonly plainName: string;
  readonly sector: number;
  readonly bytes: number;
}

/** `label` has at most 16 characters; names at most 64, in any case, of letters, digits, `.`, `_` and `-`. */
export function isoImage(label: string, files: readonly IsoFile[]): Uint8Array {
  if (!/^[A-Za-z0-9_-]{1,16}$/.test(label)) throw new RangeError(`"${label}" cannot label an ISO image`);
  const placed: Placed[] = [];
  let next = 25;
  for (const file of files) {
    if (!/^[A-Za-z0-9._-]{1,64}$/.test(file.name))
      throw new RangeError(`"${file.name}" cannot be a file of an ISO image`);
    placed.push({ name: file.name, plainName: plainName(file.name), sector: next, bytes: file.data.length });
    next += Math.max(1, Math.ceil(file.data.length / sectorBytes));
  }
  if (new Set(placed.map((file) => file.plainName)).size < files.length) {
    throw new RangeError('two files of an ISO image have the same plain name');
  }

  const image = new Uint8Array(next * sectorBytes);
  const put = (sector: number, bytes: Uint8Array): void => image.set(bytes, sector * sectorBytes);
  put(16, descriptor({ joliet: false, label, sectors: next }));
  put(17, descriptor({ joliet: true, label, sectors: next }));
  put(18, terminator());
  for (const [i, rootSector] of [23, 24].entries()) {
    put(19 + 2 * i, pathTable(rootSector, true));
    put(20 + 2 * i, pathTable(rootSector, false));
  }
  put(23, rootDirectory(23, placed, false));
  put(24, rootDirectory(24, placed, true));
  for (const [i, file] of files.entries()) put(placed[i]?.sector ?? 0, file.data);
  return image;
}

/** The name for readers without Joliet: 8.3 capitals and a version. */
function plainName(name: string): string {
  const upper = name.toUpperCase().replaceAll('-', '_');
  const dot = upper.lastIndexOf('.');
  const stem = (dot > 0 ? upper.slice(0, dot) : upper).replaceAll('.', '_').slice(0, 8);
  const extension = dot > 0 ? upper.slice(dot + 1, dot + 4) : '';
  return `${stem}.${extension};1`;
}

function descriptor(volume: { joliet: boolean; label: string; sectors: number }): Uint8Array {
  const bytes = new Uint8Array(sectorBytes);
  const text = (offset: number, length: number, value: string): void => {
    if (volume.joliet) bytes.set(ucs2(value.slice(0, Math.floor(length / 2)).padEnd(Math.floor(length / 2))), offset);
    else bytes.set(ascii(value.padEnd(length)), offset);
  };
  const pathTableSector = volume.joliet ? 21 : 19;
  bytes[0] = volume.joliet ? 2 : 1;
  bytes.set(ascii('CD001'), 1);
  bytes[6] = 1;
  text(8, 32, '');
  text(40, 32, volume.label);
  both32(bytes, 80, volume.sectors);
  if (volume.joliet) bytes.set(ascii('%/E'), 88);
  both16(bytes, 120, 1);
  both16(bytes, 124, 1);
  both16(bytes, 128, sectorBytes);
  both32(bytes, 132, 10);
  const view = new DataView(bytes.buffer);
  view.setUint32(140, pathTableSector, true);
  view.setUint32(148, pathTableSector + 1, false);
  bytes.set(record(Uint8Array.of(0), { sector: volume.joliet ? 24 : 23, bytes: sectorBytes, directory: true }), 156);
  for (const [offset, length] of textFields) text(offset, length, '');
  for (const offset of [813, 830, 847, 864]) bytes.set(ascii('0'.repeat(16)), offset); // "no date"
  bytes[881] = 1;
  return bytes;
}

/** Volume set, publisher, preparer, application; copyright, abstract and bibliographic file. */
const textFields = [
  [190, 128],
  [318, 128],
  [446, 128],
  [574, 128],
  [702, 37],
  [739, 37],
  [776, 37],
] as const;

function terminator(): Uint8Array {
  return Uint8Array.of(255, ...ascii('CD001'), 1);
}

function pathTable(rootSector: number, littleEndian: boolean): Uint8Array {
  const bytes = new Uint8Array(10);
  const view = new DataView(bytes.buffer);
  bytes[0] = 1;
  view.setUint32(2, rootSector, littleEndian);
  view.setUint16(6, 1, littleEndian);
  return bytes;
}

function rootDirectory(sector: number, files: readonly Placed[], joliet: boolean): Uint8Array {
  const self = { sector, bytes: sectorBytes, directory: true };
  const sorted = [...files].sort((a, b) => compare(joliet ? a.name : a.plainName, joliet ? b.name : b.plainName));
  const records = [record(Uint8Array.of(0), self), record(Uint8Array.of(1), self)];
  for (const file of sorted) {
    const name = joliet ? ucs2(file.name) : ascii(file.plainName);
    records.push(record(name, { sector: file.sector, bytes: file.bytes, directory: false }));
  }
  const bytes = new Uint8Array(sectorBytes);
  let offset = 0;
  for (const entry of records) {
    if (offset + entry.length > sectorBytes)
      throw new RangeError('too many files for the root directory of an ISO image');
    bytes.set(entry, offset);
    offset += entry.length;
  }
  return bytes;
}

function record(name: Uint8Array, extent: { sector: number; bytes: number; directory: boolean }): Uint8Array {
  const length = 33 + name.length + (name.length % 2 === 0 ? 1 : 0);
  const bytes = new Uint8Array(length);
  bytes[0] = length;
  both32(bytes, 2, extent.sector);
  both32(bytes, 10, extent.bytes);
  bytes.set([70, 1, 1, 0, 0, 0, 0], 18); // 1 January 1970: always the same
  bytes[25] = extent.directory ? 2 : 0;
  both16(bytes, 28, 1);
  bytes[32] = name.length;
  bytes.set(name, 33);
  return bytes;
}

function both16(bytes: Uint8Array, offset: number, value: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  view.setUint16(offset, value, true);
  view.setUint16(offset + 2, value, false);
}

function both32(bytes: Uint8Array, offset: number, value: number): void {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  view.setUint32(offset, value, true);
  view.setUint32(offset + 4, value, false);
}

const ascii = (text: string): Uint8Array => new TextEncoder().encode(text);

function ucs2(text: string): Uint8Array {
  const bytes = new Uint8Array(text.length * 2);
  for (let i = 0; i < text.length; i++) bytes.set([text.charCodeAt(i) >> 8, text.charCodeAt(i) & 0xff], 2 * i);
  return bytes;
}

const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);
