// `berth restore FILE --store URL`: restores a store from a backup. Guests that the backup does not know are left
// alone, and its claims about guests count only once their hosts have confirmed them.

import { Command } from 'commander';
import { systemPrng } from '../base/system.ts';
import { newId } from '../base/ids.ts';
import { describeError } from '../base/log.ts';
import type { Cli } from '../cli/cli.ts';
import { CommandError, exitCodes } from '../cli/exit-codes.ts';
import { fileReason } from '../cli/options/file-failure.ts';
import { startProgress } from '../cli/print/progress.ts';
import { restoredRecord } from '../core/operations/restored-record.ts';
import { prefixOf } from '../core/state/keys.ts';
import { BadBackup, type Backup } from '../server/storage/backup.ts';
import { isEmpty, refill } from '../server/storage/refill.ts';
import { openedEntries } from '../server/sealing/opened-entries.ts';
import { loadBackup } from './backup-file.ts';
import { masterKeyOption, masterKeysFor, plainStoreOf, withKeyAdvice } from './sealed-store-of.ts';
import type { Store } from '../store/store.ts';
import { openStoreOf, tellFailure } from './store-of.ts';

interface RestoreFlags {
  readonly store: string;
  readonly masterKeyFile?: string;
  readonly yes?: true;
  readonly json?: true;
}

export function restoreCommand(cli: Cli): Command {
  return new Command('restore')
    .description('Restore a store from a backup')
    .argument('<file>', 'made by "berth backup"')
    .requiredOption('--store <url>', 'sqlite:PATH, postgres://... or etcd://...; its contents are replaced')
    .option(...masterKeyOption)
    .option('--yes', 'replace the contents of the store; an empty store needs no --yes')
    .option('--json', 'print a summary as JSON')
    .action(async (file: string, { store: url, yes, json, masterKeyFile }: RestoreFlags) => {
      const backup = await wholeBackup(file);
      const masterKeys = await masterKeysFor(url, masterKeyFile);
      const entries = await withKeyAdvice(`restore from ${file}`, () => openedEntries(backup.entries, masterKeys));
      const store = await openStoreOf(url);
      const progress = startProgress(cli);
      try {
        if (!yes && !(await isEmpty(store)))
          throw new CommandError(exitCodes.usage, 'the store is not empty: its contents would be replaced', {
            advice: 'make a backup of it first ("berth backup FILE --store URL"), then add --yes',
          });
        const returned = await tokensThatReturn(store, entries);
        const nowMs = cli.clock.nowMs();
        const target = await plainStoreOf(store, { masterKeys, nowMs });
        const done = await tellFailure('restore', () =>
          refill(target, {
            entries,
            convert: (record, { newestSession }) => restoredRecord(record, { nowMs, newestSession }),
            newEpoch: newId('epoch', nowMs, systemPrng()),
            nowMs,
            by: 'restore',
            why: 'a restore from a backup is in progress; if it was interrupted, run "berth restore" again',
            restored: { atMs: nowMs, backupRevision: backup.revision },
            onProgress: (count, all) => progress.update(`restoring, ${Math.floor((100 * count) / Math.max(1, all))} %`),
          }),
        );
        progress.end();
        cli.stdout.write(
          json
            ? `${JSON.stringify({ ...done, revision: backup.revision, entries: backup.entries.size, tokens: returned })}\n`
            : `restored ${backup.entries.size} entries of revision ${backup.revision} (${new Date(backup.createdAtMs).toISOString()}): ${done.written} written, ${done.deleted} removed\n` +
                tokenText(returned) +
                'start the servers; "berth verify" shows what is on hosts but not in the backup\n',
        );
      } finally {
        progress.end();
        await store.close();
      }
    });
}

/** Names of the tokens that the backup has and the store has not: some of them may have been revoked since. */
async function tokensThatReturn(store: Store, entries: ReadonlyMap<string, unknown>): Promise<string[]> {
  const prefix = prefixOf('token');
  const present = new Set((await store.list(prefix)).entries.map(({ key }) => key));
  return [...entries.keys()]
    .filter((key) => key.startsWith(prefix) && !present.has(key))
    .map((key) => key.slice(prefix.length));
}

const namedMax = 10;

function tokenText(names: readonly string[]): string {
  if (names.length === 0) return '';
  const more = names.length > namedMax ? ` and ${names.length - namedMax} more` : '';
  return `tokens that are valid again: ${names.slice(0, namedMax).join(', ')}${more}; revoke those that were revoked after the backup: berth token revoke NAME\n`;
}

async function wholeBackup(file: string): Promise<Backup> {
  try {
    return await loadBackup(file);
  } catch (error) {
    const refused = fileReason(error);
    const why = refused ?? describeError(error);
    const bad = error instanceof BadBackup || refused !== undefined ? '' : ' (it cannot be read or unpacked)';
    throw new CommandError(exitCodes.usage, `cannot restore from ${file}: ${why}${bad}; nothing was changed`, {
      cause: error,
    });
  }
}
