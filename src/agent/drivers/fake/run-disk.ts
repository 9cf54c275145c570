// The program on the run disk of a fake guest: a tar archive in the layout that a real guest's runner unpacks. Pure.

const blockBytes = 512;
const pathDefault = '.solstice/job.sh';

/** The text of the program; undefined: the disk has none, and a real runner would not find any either. */
export function programOn(disk: Uint8Array): string | undefined {
  const files = filesIn(Buffer.from(disk.buffer, disk.byteOffset, disk.length));
  const path = /^program='?([^'\n]*)'?$/m.exec(files.get('settings') ?? '')?.[1];
  return files.get('script') ?? files.get(`work/${path === undefined || path === '' ? pathDefault : path}`);
}

/** Plain files with a name in the header. What is no archive has none. */
function filesIn(archive: Buffer): Map<string, string> {
  const files = new Map<string, string>();
  for (let at = 0; at + blockBytes <= archive.length; ) {
    const header = archive.subarray(at, at + blockBytes);
    const text = (from: number, to: number): string => header.toString('utf8', from, to).replace(/\0.*$/s, '');
    const sizeBytes = Number.parseInt(text(124, 136).trim(), 8);
    if (text(257, 262) !== 'ustar' || !Number.isSafeInteger(sizeBytes) || sizeBytes < 0) break;
    const begin = at + blockBytes;
    const [prefix, name, type] = [text(345, 500), text(0, 100), text(156, 157)];
    const path = (prefix === '' ? name : `${prefix}/${name}`).replace(/^\.\//, '');
    if (type === '' || type === '0') files.set(path, archive.toString('utf8', begin, begin + sizeBytes));
    at = begin + Math.ceil(sizeBytes / blockBytes) * blockBytes;
  }
  return files;
}
