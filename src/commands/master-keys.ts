// `berth server keys` and `berth server rotate-key`: the master keys that a server needs, and a new one in a key file.

import { readFile } from 'node:fs/promises';
import { resolve } from 'node:path';
import { Command } from 'commander';
import type { Cli } from '../cli/cli.ts';
import { attempting, CommandError, exitCodes } from '../cli/exit-codes.ts';
import { fileReason } from '../cli/options/file-failure.ts';
import { tableLines } from '../cli/print/output.ts';
import { openSession } from '../cli/session.ts';

const usualDirectory = '/var/lib/berth/server';

export function serverKeysCommand(cli: Cli): Command {
  return new Command('keys')
    .description('Show which master keys the store needs')
    .option('--json', 'as JSON')
    .action(async ({ json }: { json?: true }, command: Command) => {
      const { client } = await openSession(cli, command);
      const status = await attempting('show the master keys', () => client.masterKeys());
      if (json) return void cli.stdout.write(`${JSON.stringify(status)}\n`);
      if (!status.encrypts)
        return void cli.stdout.write('no master key is configured: secrets are stored in plain text\n');
      const lines = tableLines(
        [
          { header: 'MASTER KEY', value: ({ id }) => id },
          { header: 'CURRENT', value: ({ current }) => (current ? 'yes' : 'no') },
          { header: 'GIVEN', value: ({ given }) => (given ? 'yes' : 'no') },
          { header: 'DATA KEYS', value: ({ dataKeys }) => String(dataKeys), right: true },
        ],
        status.keys,
      );
      cli.stdout.write(`${lines.join('\n')}\n`);
      if (status.plainRecords > 0) cli.stdout.write(`${status.plainRecords} records are yet to be encrypted\n`);
      for (const { id, current, dataKeys } of status.keys)
        if (!current && dataKeys === 0)
          cli.stdout.write(
            `nothing in the store needs ${id}: remove it from the key files, keep it for older backups\n`,
          );
    });
}

interface RotateFlags {
  readonly dataDir?: string;
  readonly masterKeyFile?: string;
}

export function rotateKeyCommand(cli: Cli): Command {
  return new Command('rotate-key')
    .description('Add a new master key at the top of the key file; a running server uses it within seconds')
    .option('--data-dir <directory>', `of the server, whose master.key is meant; default: ${usualDirectory}`)
    .option('--master-key-file <file>', 'the file of masterKeyFile instead')
    .action(async (_: RotateFlags, command: Command) => {
      // "berth server" has an option of the same name, and takes it.
      const { dataDir, masterKeyFile } = command.optsWithGlobals<RotateFlags>();
      const { newMasterKey, ownKeyPath, writeMasterKeys } = await import('../server/sealing/read-master-keys.ts');
      const { parseMasterKeys } = await import('../server/sealing/master-keys.ts');
      const directory = dataDir ?? (cli.environment['BERTH_SERVER_DATA_DIRECTORY'] || usualDirectory);
      const path = resolve(masterKeyFile ?? ownKeyPath(directory));
      const old = await attemptFile(path, () => readFile(path, 'utf8'));
      const before = await attemptFile(path, () => parseMasterKeys(old).current.id);
      const text = `${newMasterKey()}\n${old}`;
      await attemptFile(path, () => writeMasterKeys(path, text));
      const { id } = parseMasterKeys(text).current;
      cli.stdout.write(
        `${path}: master key ${id} is the current one, ${before} stays for what is encrypted under it\n` +
          'copy the file to the other servers of this store; "berth server keys" shows when the old key is not needed\n',
      );
    });
}

async function attemptFile<T>(path: string, work: () => T | Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (cause) {
    const why = fileReason(cause) ?? (cause instanceof Error ? cause.message : 'it cannot be used');
    throw new CommandError(exitCodes.usage, `cannot rotate the key in ${path}: ${why}`, { cause });
  }
}
