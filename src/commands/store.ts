// `berth store check` and `berth store migrate`: work on the store itself, without a server.

import { Command } from 'commander';
import { newId } from '../base/ids.ts';
import { systemPrng } from '../base/system.ts';
import type { Cli } from '../cli/cli.ts';
import { CommandError, exitCodes } from '../cli/exit-codes.ts';
import { startProgress } from '../cli/print/progress.ts';
import { readBackup, writeBackup } from '../server/storage/backup.ts';
import { checkStore } from '../server/storage/check-store.ts';
import { closeForMove, isEmpty, isHalfMoved, refill } from '../server/storage/refill.ts';
import { StoreError } from '../store/store.ts';
import { openedEntries } from '../server/sealing/opened-entries.ts';
import { masterKeyOption, masterKeysFor, plainStoreOf, withKeyAdvice } from './sealed-store-of.ts';
import { openStoreOf, tellFailure } from './store-of.ts';

export function storeCommand(cli: Cli): Command {
  const store = new Command('store').description('Check a store, or move it to another');
  store.addCommand(checkCommand(cli));
  store.addCommand(migrateCommand(cli));
  return store;
}

function checkCommand(cli: Cli): Command {
  return new Command('check')
    .description('Read a whole store and report damage')
    .argument('<url>', 'sqlite:PATH (with its server stopped), postgres://... or etcd://...')
    .option('--json', 'as JSON')
    .action(async (url: string, { json }: { json?: true }) => {
      const store = await openStoreOf(url, { mustExist: true });
      const progress = startProgress(cli);
      try {
        const found = await tellFailure('check the store', () =>
          checkStore(store, { onProgress: (entries) => progress.update(`reading, ${entries} entries`) }),
        );
        progress.end();
        const { faults, closed, ...counts } = found;
        if (json) cli.stdout.write(`${JSON.stringify(found)}\n`);
        else {
          for (const fault of faults) cli.stdout.write(`${fault}\n`);
          if (closed !== undefined) cli.stdout.write(`it is closed to servers: ${closed}\n`);
          const { entries, encrypted, revision, history, changes } = counts;
          cli.stdout.write(
            `${entries} entries${encrypted > 0 ? ` (${encrypted} encrypted, not read)` : ''} at revision ${revision}; ${history} revisions of history with ${changes} changes; ${faults.length} faults\n`,
          );
        }
        if (faults.length > 0)
          throw new CommandError(exitCodes.badOutcome, `the store has ${faults.length} faults`, {
            advice: 'keep a copy of it as it is; "berth backup FILE --store URL" saves what can be read',
          });
      } finally {
        progress.end();
        await store.close();
      }
    });
}

interface MigrateFlags {
  readonly json?: true;
  readonly masterKeyFile?: string;
}

function migrateCommand(cli: Cli): Command {
  return new Command('migrate')
    .description('Move all data from one store to another, of any kind; the first is closed permanently')
    .argument('<from>', 'the current store; stop its servers first')
    .argument('<to>', 'an empty store')
    .option(masterKeyOption[0], 'master key of both stores; default for each with SQLite: master.key beside it')
    .option('--json', 'print a summary as JSON')
    .action(async (fromUrl: string, toUrl: string, { json, masterKeyFile }: MigrateFlags) => {
      if (fromUrl === toUrl)
        throw new CommandError(exitCodes.usage, 'both URLs name the same store; nothing was changed');
      const from = await openStoreOf(fromUrl, { mustExist: true });
      const progress = startProgress(cli);
      try {
        const to = await openStoreOf(toUrl);
        try {
          if (!(await isEmpty(to)) && !(await isHalfMoved(to)))
            throw new CommandError(exitCodes.usage, 'the second store is not empty; nothing was changed', {
              advice: 'name an empty one: another file, another schema=, another prefix',
            });
          const nowMs = cli.clock.nowMs();
          const [fromKeys, toKeys] = await Promise.all(
            [fromUrl, toUrl].map((url) => masterKeysFor(url, masterKeyFile)),
          );
          if (fromKeys && !toKeys)
            throw new CommandError(
              exitCodes.usage,
              'there is no master key for the second store; nothing was changed',
              {
                advice:
                  'give the key that its servers will have: --master-key-file FILE, such as the master.key of the first',
              },
            );
          const target = await plainStoreOf(to, { masterKeys: toKeys, nowMs });
          await plainStoreOf(from, { masterKeys: fromKeys, nowMs });
          progress.update('closing the first store');
          const done = await tellFailure('migrate', async () => {
            const closed = await closeForMove(from, nowMs);
            let moved: Awaited<ReturnType<typeof refill>> | undefined;
            try {
              progress.update('reading');
              const backup = await readBackup(writeBackup(from, { version: cli.version, nowMs, closedToo: true }));
              const entries = await withKeyAdvice('migrate', () => openedEntries(backup.entries, fromKeys));
              moved = await refill(target, {
                entries,
                convert: (record) => record,
                newEpoch: newId('epoch', nowMs, systemPrng()),
                nowMs,
                by: 'move',
                why: 'a move from another store is in progress; if it was interrupted, run "berth store migrate" again',
                restored: { atMs: nowMs, backupRevision: backup.revision },
                onProgress: (count, all) =>
                  progress.update(`writing, ${Math.floor((100 * count) / Math.max(1, all))} %`),
              });
              await closed.seal();
              return { ...moved, ledBy: closed.ledBy };
            } catch (error) {
              // When the second store is open, or may be, the first stays closed: both must never be open.
              if (moved)
                throw new CommandError(
                  exitCodes.badOutcome,
                  'all data was moved and the second store is open; the first could not be updated, and stays closed',
                  { advice: 'start the servers with the second store, and do not use the first again', cause: error },
                );
              if (!(error instanceof StoreError && error.outcome === 'unknown')) await closed.reopen();
              throw error;
            }
          });
          progress.end();
          if (done.ledBy !== undefined)
            cli.stderr.write(
              `server "${done.ledBy}" led the first store when it was closed: if it is still running, it writes nothing more and answers 503; stop it\n`,
            );
          cli.stdout.write(
            json
              ? `${JSON.stringify(done)}\n`
              : `moved ${done.written} entries; start the servers with the new store\n`,
          );
        } finally {
          await to.close();
        }
      } finally {
        progress.end();
        await from.close();
      }
    });
}
