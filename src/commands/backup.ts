// `berth backup FILE`: saves the control plane's whole state at one revision, while it keeps running.

import { access, stat } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import { Command } from 'commander';
import type { Cli } from '../cli/cli.ts';
import { attempting, CommandError, exitCodes } from '../cli/exit-codes.ts';
import { startProgress } from '../cli/print/progress.ts';
import { openSession } from '../cli/session.ts';
import { bytes as sizeText } from '../cli/options/units.ts';
import type { Backup } from '../server/storage/backup.ts';
import { openStoreOf, tellFailure } from './store-of.ts';

interface BackupFlags {
  readonly store?: string;
  readonly force?: true;
  readonly json?: true;
}

/** By the ending of the name. */
const compressions: ReadonlySet<string> = new Set(['.zst', '.gz']);

export function backupCommand(cli: Cli): Command {
  return new Command('backup')
    .description('Back up all data of the control plane, while it keeps working')
    .argument('<file>', 'a name that ends in .zst or .gz compresses it; it holds secrets, so only you can read it')
    .option('--store <url>', 'read this store directly, instead of asking the server')
    .option('--force', 'replace the file if it exists')
    .option('--json', 'print a summary as JSON')
    .action(async (file: string, { store: url, force, json }: BackupFlags, command: Command) => {
      const path = resolve(file);
      const other = /\.(xz|bz2|lz4|lzma|br|zip|7z|tgz|zstd|gzip|zst|gz)$/i.exec(path)?.[0];
      if (other !== undefined && !compressions.has(other))
        throw new CommandError(exitCodes.usage, `${other} is not a format of backups`, {
          advice: 'end the name in .zst or .gz for a compressed backup, in .jsonl for a plain one',
        });
      if (!(await isDirectory(dirname(path))))
        throw new CommandError(exitCodes.usage, `there is no directory ${dirname(path)} for the backup`);
      if (!force && (await exists(path)))
        throw new CommandError(exitCodes.usage, `${path} exists already`, {
          advice: 'choose another name, or replace it with --force',
        });
      const { saveBackup } = await import('./backup-file.ts');
      const progress = startProgress(cli);
      const counted = async function* (pieces: AsyncIterable<Uint8Array>) {
        let bytes = 0;
        for await (const piece of pieces) {
          bytes += piece.byteLength;
          progress.update(`reading, ${sizeText(bytes)}`);
          yield piece;
        }
      };
      let backup: Backup;
      try {
        backup =
          url === undefined
            ? await fromServer(cli, command, (pieces) => saveBackup(path, counted(pieces)))
            : await fromStore(cli, url, (pieces) => saveBackup(path, counted(pieces)));
      } finally {
        progress.end();
      }
      const { revision, entries, masterKeys } = backup;
      cli.stdout.write(
        json
          ? `${JSON.stringify({ file: path, revision, entries: entries.size, masterKeys })}\n`
          : `${path}: ${entries.size} entries at revision ${revision}, read back and complete\n${masterKeys.length === 0 ? '' : `to restore it you need master key ${masterKeys.join(', ')}: keep a copy of the key apart from the backup\n`}`,
      );
    });
}

type Save = (pieces: AsyncIterable<Uint8Array>) => Promise<Backup>;

async function fromServer(cli: Cli, command: Command, save: Save): Promise<Backup> {
  const session = await openSession(cli, command);
  return attempting('back up', async () => {
    const { body } = await session.client.request('/v1/backup', { signal: cli.interruption() });
    return save(body ?? nothing());
  });
}

async function fromStore(cli: Cli, url: string, save: Save): Promise<Backup> {
  const { writeBackup } = await import('../server/storage/backup.ts');
  const store = await openStoreOf(url, {
    mustExist: true,
    advice: { Locked: 'or leave out --store, to back up through the server' },
  });
  try {
    return await tellFailure('back up', () =>
      save(writeBackup(store, { version: cli.version, nowMs: cli.clock.nowMs() })),
    );
  } finally {
    await store.close();
  }
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

async function isDirectory(path: string): Promise<boolean> {
  return stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  );
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}
