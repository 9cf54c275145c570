// Writes small tar archives (ustar), for the images of tests.

export type TarEntry =
  | { readonly path: string; readonly data: Buffer; readonly executable?: boolean }
  | { readonly path: string; readonly directory: true }
  | { readonly path: string; readonly linkTo: string };

const blockBytes = 512;

export function tarOf(entries: readonly TarEntry[]): Buffer {
  const blocks = entries.flatMap((entry) => {
    const data = 'data' in entry ? entry.data : Buffer.alloc(0);
    return [headerOf(entry, data.length), data, Buffer.alloc((blockBytes - (data.length % blockBytes)) % blockBytes)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(2 * blockBytes)]);
}

function headerOf(entry: TarEntry, size: number): Buffer {
  const header = Buffer.alloc(blockBytes);
  const octal = (value: number, length: number): string => `${value.toString(8).padStart(length - 1, '0')}\0`;
  const executable = !('data' in entry) || entry.executable === true;
  header.write(entry.path, 0, 100);
  header.write(octal(executable ? 0o755 : 0o644, 8), 100);
  header.write(octal(0, 8), 108);
  header.write(octal(0, 8), 116);
  header.write(octal(size, 12), 124);
  header.write(octal(0, 12), 136);
  header.write('        ', 148);
  header.write('data' in entry ? '0' : 'linkTo' in entry ? '2' : '5', 156);
  if ('linkTo' in entry) header.write(entry.linkTo, 157, 100);
  header.write('ustar\x0000', 257);
  header.write(
    `${header
      .reduce((sum, byte) => sum + byte, 0)
      .toString(8)
      .padStart(6, '0')}\0 `,
    148,
  );
  return header;
}
