// Saves the logs of a failed guest from its directory, which is deleted with the guest.

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const logs = ['console.log', 'qemu.stderr'] as const;

/** False: it could not be written; the original failure is what matters. */
export async function keepLogs(
  folder: string,
  { path, heading }: { readonly path: string; readonly heading: string },
): Promise<boolean> {
  const texts = await Promise.all(
    logs.map(async (name) => {
      const text = await readFile(join(folder, name), 'latin1').catch(() => ''); // there is none
      return `--- ${name}\n${text}\n`;
    }),
  );
  return writeFile(path, `${heading}\n${texts.join('')}`, { encoding: 'latin1', mode: 0o600 }).then(
    () => true,
    () => false,
  );
}
