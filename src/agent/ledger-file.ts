// The ledger as a file. It is replaced as a whole, so that after a power cut there is either the old one or the new one.

import { open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { LedgerFile } from './ledger.ts';

export function ledgerFileAt(path: string): LedgerFile {
  return {
    async read() {
      try {
        return await readFile(path, 'utf8');
      } catch (error) {
        if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
        throw error;
      }
    },
    async write(text) {
      const temporary = `${path}.new`;
      // 0600: user-data may hold secrets.
      const file = await open(temporary, 'w', 0o600);
      try {
        await file.writeFile(text);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
      await syncDirectory(dirname(path)); // else the rename itself may be lost
    },
    async setAside() {
      const aside = `${path}.damaged`;
      await rename(path, aside);
      return aside;
    },
  };
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r');
  try {
    await directory.sync();
  } finally {
    await directory.close();
  }
}
