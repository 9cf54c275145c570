// The ledger as a file. It is replaced as a whole, so that after a power cut there is either the old one or the new one.

import { open, readFile, rename } from 'node:fs/promises';
import { dirname } from 'node:path';
import type { LedgerFile } from './ledger.ts';

/** What is asked of a disk, call by call: what is not synced may be lost, in any order, when the power is. */
export interface DiskCalls {
  /** Null: there is no such file. */
  read(path: string): Promise<string | null>;
  /** Replaces the file, or its content. */
  write(path: string, text: string): Promise<void>;
  sync(path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  syncDirectory(path: string): Promise<void>;
}

export function ledgerFileAt(path: string, disk: DiskCalls = realDisk): LedgerFile {
  return {
    read: () => disk.read(path),
    async write(text) {
      const temporary = `${path}.new`;
      await disk.write(temporary, text);
      await disk.sync(temporary);
      await disk.rename(temporary, path);
      await disk.syncDirectory(dirname(path)); // else the rename itself may be lost
    },
    async setAside() {
      const aside = `${path}.damaged`;
      await disk.rename(path, aside);
      return aside;
    },
  };
}

const realDisk: DiskCalls = {
  async read(path) {
    try {
      return await readFile(path, 'utf8');
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return null;
      throw error;
    }
  },
  async write(path, text) {
    const file = await open(path, 'w', 0o600); // 0600: user-data may hold secrets
    try {
      await file.writeFile(text);
    } finally {
      await file.close();
    }
  },
  sync: (path) => syncAt(path, 'r+'),
  rename,
  syncDirectory: (path) => syncAt(path, 'r'),
};

/** Of the file itself: through which handle it was written does not matter. */
async function syncAt(path: string, flags: 'r' | 'r+'): Promise<void> {
  const file = await open(path, flags);
  try {
    await file.sync();
  } finally {
    await file.close();
  }
}
