// Removing a pool, an image, a size or a group: what uses it is shown first, with the hash that removes it all the same.

import type { Command } from 'commander';
import { ApiError, type ErrorCode, errorCodes } from '../../api/errors.ts';
import type { ChangeEffect, Effects } from '../../api/plans/effects.ts';
import type { UsedKind } from '../../api/plans/used-kinds.ts';
import type { UserClient } from '../../api/client/user-client.ts';
import type { Cli } from '../cli.ts';
import { attempting, CommandError, usageError } from '../exit-codes.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { applyCommand } from '../print/apply-command.ts';
import { type Column, coloursFor, type Format, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { visible } from '../print/terminal.ts';
import { openSession } from '../session.ts';

interface RemoveOptions {
  readonly apply?: string;
  readonly dryRun?: true;
  readonly output: Format;
}

interface Removal {
  readonly kind: UsedKind;
  /** `placement group` */
  readonly word: string;
  readonly advice: Partial<Record<ErrorCode, string>>;
}

/** Adds the options and the action to a command whose argument is a list of names. */
export function removeUsed(cli: Cli, command: Command, { kind, word, advice }: Removal): Command {
  return command
    .option('--dry-run', 'show what uses it and what would happen, and remove nothing')
    .option('--apply <hash>', 'remove it although it is in use, as the dry run with this hash showed')
    .addOption(outputOption('value'))
    .action(async (names: readonly string[], options: RemoveOptions, called: Command) => {
      if (options.apply !== undefined && (names.length > 1 || options.dryRun))
        throw usageError('--apply is for one name, without --dry-run');
      const { client, project } = await openSession(cli, called);
      const place = kind === 'group' ? { project } : {};
      const failures = await forEachName(cli, names, (name) =>
        attempting(
          `remove ${word} "${name}"`,
          async () => {
            await (options.dryRun ? showEffects : remove)(cli, client, { kind, word, name, place, options, called });
          },
          advice,
        ),
      );
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

interface Asked {
  readonly kind: UsedKind;
  readonly word: string;
  readonly name: string;
  readonly place: { readonly project?: string };
  readonly options: RemoveOptions;
  readonly called: Command;
}

async function remove(cli: Cli, client: UserClient, asked: Asked): Promise<void> {
  const { kind, word, name, place, options, called } = asked;
  try {
    await client.delete(kind, name, { ...place, ...(options.apply === undefined ? {} : { apply: options.apply }) });
  } catch (error) {
    if (!(error instanceof ApiError && error.code === 'Conflict')) throw error;
    const hash = await showEffects(cli, client, asked);
    const removable = kind !== 'group' && hash !== undefined;
    throw new CommandError(errorCodes.Conflict.exitCode, `cannot remove ${word} "${name}": ${error.message}`, {
      cause: error,
      ...(removable ? { advice: `to remove it all the same: ${applyCommand(called, hash, [name])}` } : {}),
    });
  }
  cli.stdout.write(`${name} removed\n`);
}

/** Returns the hash of what it has shown. */
async function showEffects(cli: Cli, client: UserClient, asked: Asked): Promise<string | undefined> {
  const { kind, word, name, place, options } = asked;
  const { effects } = await client.dryRunOfDelete(kind, name, place);
  if (!effects) return undefined;
  if (options.output === 'json' || options.output === 'yaml') await printValue(cli, options.output, effects);
  else if (effects.count === 0) cli.stdout.write(`nothing uses ${word} ${name}\n`);
  else cli.stdout.write(`${effectLines(cli, effects).join('\n')}\n`);
  return effects.count === 0 ? undefined : effects.hash;
}

export function effectLines(cli: Cli, { affected, count, hash }: Effects): string[] {
  const more = count > affected.length ? [`... and ${count - affected.length} more`] : [];
  const colours = coloursFor(cli.stdout, cli.environment);
  return [...tableLines(effectColumns, affected, { colours }), ...more, visible(`Effects ${hash}`)];
}

const effectColumns: readonly Column<ChangeEffect>[] = [
  { header: 'KIND', value: ({ kind }) => kind },
  {
    header: 'NAME',
    value: ({ project, name }) => `${project === '' || project === 'default' ? '' : `${project}/`}${name}`,
  },
  { header: 'EFFECT', value: ({ code }) => code },
  { header: 'WHAT HAPPENS', value: ({ message }) => message },
];
