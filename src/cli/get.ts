// `berth get KIND [NAME]`: any resource as it is stored, or a list of a kind.

import { Command } from 'commander';
import { pluralOf } from '../api/resources/plural-of.ts';
import { nearest } from '../api/nearest.ts';
import { type Kind, type ResourceByKind, resourceDefinitions } from '../api/resources/index.ts';
import type { Cli } from './cli.ts';
import { attempting, usageError } from './exit-codes.ts';
import { listAll } from './print/follow.ts';
import { kindOf, kinds, kindViews } from './kinds.ts';
import { type Format, printList, printNames, printTable, printValue } from './print/output.ts';
import { outputOption } from './print/output-option.ts';
import { nothingFound } from './print/nothing-found.ts';
import { openSession, type Session } from './session.ts';

interface GetOptions {
  readonly output: Format;
  readonly selector?: string;
  readonly allProjects?: true;
}

export function getCommand(cli: Cli): Command {
  return new Command('get')
    .description('Show one resource, or all of a kind')
    .argument('<kind>', kinds.join(', '))
    .argument('[name]', 'its name or id')
    .option('-l, --selector <selector>', 'only those with these labels')
    .option('-A, --all-projects', 'of every project')
    .addOption(outputOption('list'))
    .action(async (word: string, name: string | undefined, options: GetOptions, command: Command) => {
      const kind = kindOf(word);
      if (!kind) {
        const meant = nearest(word, kinds);
        throw usageError(
          `there is no kind "${word}"`,
          meant ? `did you mean "${meant}"?` : `the kinds are: ${kinds.join(', ')}`,
        );
      }
      const session = await openSession(cli, command);
      await (name === undefined
        ? list(cli, session, kind, options)
        : show(cli, session, kind, { name, format: options.output }));
    });
}

async function list<K extends Kind>(
  cli: Cli,
  { client, project }: Session,
  kind: K,
  { output, selector, allProjects }: GetOptions,
): Promise<void> {
  const query = {
    ...(kind !== 'event' && resourceDefinitions[kind].scope === 'project' && !allProjects ? { project } : {}),
    ...(selector === undefined ? {} : { selector }),
  };
  const { items } = await attempting(`list ${pluralOf(kind)}`, () => listAll(client, kind, query));
  await printList<ResourceByKind[K]>(cli, output, {
    items,
    columns: kindViews[kind]({ nowMs: cli.clock.nowMs() }),
    empty: nothingFound(pluralOf(kind), { selector, otherwise: `no ${pluralOf(kind)}` }),
  });
}

/** A table for a single resource is of little use: the default is YAML. */
export async function show<K extends Kind>(
  cli: Cli,
  { client, project }: Session,
  kind: K,
  { name, format }: { readonly name: string; readonly format: Format },
): Promise<void> {
  const scope = resourceDefinitions[kind].scope === 'project' ? { project } : {};
  const resource = await attempting(`show ${kind} "${name}"`, () => client.get(kind, name, scope), {
    NotFound: `"berth get ${kind}" shows all of them`,
  });
  if (format === 'name') return printNames(cli, [resource]);
  if (format === 'table' || format === 'wide')
    return printTable<ResourceByKind[K]>(cli, kindViews[kind]({ nowMs: cli.clock.nowMs() }), [resource], format);
  await printValue(cli, format, resource);
}
