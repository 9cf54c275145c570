// Writes a cpio archive (newc, as Linux wants its first file system): pure, and the same bytes for the same entries.

export type CpioEntry =
  | { readonly kind: 'directory'; readonly path: string }
  | { readonly kind: 'file'; readonly path: string; readonly mode: number; readonly data: Uint8Array }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }
  | { readonly kind: 'character-device'; readonly path: string; readonly major: number; readonly minor: number };

/** Entries in the given order; a directory must come before what is in it. Everything belongs to root. */
export function cpioArchive(entries: readonly CpioEntry[]): Buffer {
  const parts = entries.flatMap((entry, index) => record(entry, index + 1));
  parts.push(...record({ kind: 'file', path: 'TRAILER!!!', mode: 0, data: new Uint8Array() }, 0));
  return Buffer.concat(parts);
}

function record(entry: CpioEntry, inode: number): Buffer[] {
  const text = new TextEncoder();
  const [mode, data] = ((): [number, Uint8Array] => {
    switch (entry.kind) {
      case 'directory':
        return [0o040_755, new Uint8Array()];
      case 'file':
        return [entry.mode === 0 ? 0 : 0o100_000 | entry.mode, entry.data];
      case 'link':
        return [0o120_777, text.encode(entry.target)];
      case 'character-device':
        return [0o020_600, new Uint8Array()];
    }
  })();
  const device = entry.kind === 'character-device' ? [entry.major, entry.minor] : [0, 0];
  const name = Buffer.from(`${entry.path}\0`);
  // magic; inode, mode, uid, gid, links, time, size, device of the file, device it is, name's length, checksum (unused)
  const fields = [inode, mode, 0, 0, 1, 0, data.length, 0, 0, ...device, name.length, 0];
  const header = Buffer.from(`070701${fields.map((field) => (field ?? 0).toString(16).padStart(8, '0')).join('')}`);
  return [header, name, padding(header.length + name.length), Buffer.from(data), padding(data.length)];
}

function padding(length: number): Buffer {
  return Buffer.alloc((4 - (length % 4)) % 4);
}
