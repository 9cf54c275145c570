// `berth completion bash|zsh|fish`, and the hidden `berth complete` that the scripts call at every Tab: it must be
// quick and never fail. An argument or option whose value is named like a kind (`<instance>`, `--pool <pool>`) is
// completed with the names of that kind.

import type { Argument, Command, Option } from 'commander';
import { Command as NewCommand } from 'commander';
import { sleep } from '../base/clock.ts';
import { driverFacts } from '../api/driver-facts.ts';
import type { Kind } from '../api/resources/index.ts';
import type { Cli } from './cli.ts';
import { contextFilePath, readContexts } from './context-file.ts';
import { usageError } from './exit-codes.ts';
import { kinds } from './kinds.ts';
import { openSession } from './session.ts';

const shells = ['bash', 'zsh', 'fish'] as const;
const answerWithinMs = 800;

export function completionCommand(_cli: Cli): Command {
  return new NewCommand('completion')
    .description('Print a completion script for your shell')
    .argument('<shell>', shells.join(', '))
    .addHelpText(
      'after',
      '\nbash: source <(berth completion bash)\nzsh:  source <(berth completion zsh)\nfish: berth completion fish | source',
    )
    .action(async (shell: string) => {
      if (!shells.some((known) => known === shell))
        throw usageError(`there is no completion for "${shell}"`, `choose one of: ${shells.join(', ')}`);
      const { script } = await import('@bomb.sh/tab');
      script(shell, 'berth', 'berth');
    });
}

/** Handles `berth complete -- WORDS`: the words so far, the last one incomplete. `program` contains every command. */
export async function complete(cli: Cli, program: Command, words: readonly string[]): Promise<void> {
  const { RootCommand } = await import('@bomb.sh/tab');
  const commands = allCommands(program);
  const typed = words.filter((word) => !word.startsWith('-')).join(' ');
  const called = [...commands]
    .filter(([path]) => path !== '' && `${typed} `.startsWith(`${path} `))
    .sort(([a], [b]) => b.length - a.length)[0]?.[1];
  const names = await namesFor(cli, program, called);
  if (called !== undefined && isPlaceNext(called, words)) return offerPlaces(cli, words, names.get('instance') ?? []);

  const root = new RootCommand();
  for (const [path, command] of commands) {
    const place = path === '' ? root : root.command(path, command.description());
    for (const option of command.createHelp().visibleOptions(command)) {
      const long = option.long?.slice(2);
      if (long === undefined) continue;
      const short = option.short?.slice(1);
      if (!option.required && !option.optional) place.option(long, option.description, short);
      else
        place.option(
          long,
          option.description,
          (offer) => valuesOf(option, names).forEach((value) => offer(value, '')),
          short,
        );
    }
    for (const argument of command.registeredArguments) {
      place.argument(
        argument.name(),
        (offer) => valuesOf(argument, names).forEach((value) => offer(value, '')),
        argument.variadic,
      );
    }
  }
  root.parse([...words]);
}

/** Arguments that are a local file, or an instance and a path in it: `berth cp`. */
const placeWords: readonly string[] = ['from', 'to'];

function isPlaceNext(called: Command, words: readonly string[]): boolean {
  const [before = '', word = ''] = words.slice(-2);
  const isFlagsValue = called.options.some(
    ({ short, long, required, optional }) => (short === before || long === before) && (required || optional),
  );
  return called.registeredArguments.some(isPlace) && !isFlagsValue && !word.startsWith('-');
}

function isPlace(place: Argument | Option): boolean {
  return placeWords.includes(valueWord(place));
}

/**
 * Directives of cobra's protocol, which the scripts use: no space, because the path follows; default: the shell
 * completes its files.
 */
const noSpace = 2;
const filesToo = 0;

function offerPlaces(cli: Cli, words: readonly string[], instances: readonly string[]): void {
  const offers = instances.map((name) => `${name}:`).filter((offer) => offer.startsWith(words.at(-1) ?? ''));
  cli.stdout.write(`${offers.map((offer) => `${offer}\t\n`).join('')}:${offers.length > 0 ? noSpace : filesToo}\n`);
}

/** By their words: `host pause`. The root is ''. */
function allCommands(command: Command, path = ''): Map<string, Command> {
  const found = new Map([[path, command]]);
  for (const child of command.createHelp().visibleCommands(command)) {
    if (child.name() === 'help') continue;
    for (const [childPath, each] of allCommands(child, path === '' ? child.name() : `${path} ${child.name()}`))
      found.set(childPath, each);
  }
  return found;
}

function valuesOf(place: Argument | Option, names: ReadonlyMap<string, readonly string[]>): readonly string[] {
  if (place.argChoices !== undefined) return place.argChoices;
  const word = valueWord(place);
  return word === 'kind'
    ? kinds
    : word === 'shell'
      ? shells
      : word === 'format'
        ? ['table', 'wide', 'json', 'yaml', 'name']
        : word === 'driver'
          ? driverFacts.map(({ name }) => name)
          : spelledOut.includes(word)
            ? valuesIn(place.description)
            : (names.get(word) ?? []);
}

/** Placeholders whose values are the first words of the description: `Never or OnFailure; default: Never`. */
const spelledOut: readonly string[] = ['level', 'policy', 'recipe', 'cause'];

function valuesIn(description: string): readonly string[] {
  return description.replace(/;.*/, '').split(/, | or /);
}

/** A label is an alias or the name of an image. */
function valueWord(place: Argument | Option): string {
  const word = 'flags' in place ? (/[<[]([a-z]+)/.exec(place.flags)?.[1] ?? '') : place.name();
  return word === 'label' ? 'image' : word;
}

/** Names that fit the command line. Empty for a server that does not respond in time. */
async function namesFor(
  cli: Cli,
  program: Command,
  called: Command | undefined,
): Promise<Map<string, readonly string[]>> {
  const places = [program, ...(called ? [called] : [])].flatMap((command) => [
    ...command.options,
    ...command.registeredArguments,
  ]);
  const wanted = new Set([...places.map(valueWord), ...(places.some(isPlace) ? ['instance'] : [])]);
  const names = new Map<string, readonly string[]>();
  if (wanted.has('context')) {
    const { contexts } = await readContexts(contextFilePath(cli)).catch(() => ({ contexts: {} }));
    names.set('context', Object.keys(contexts));
  }
  const askedKinds = kinds.filter((kind) => wanted.has(kind));
  if (called && askedKinds.length > 0) {
    const enough = new AbortController();
    await Promise.race([
      Promise.all(askedKinds.map(async (kind) => names.set(kind, await namesOf(cli, called, kind)))).catch(() => {}), // no names, no harm
      sleep(cli.clock, answerWithinMs, enough.signal),
    ]);
    enough.abort();
  }
  return names;
}

async function namesOf(cli: Cli, command: Command, kind: Kind): Promise<string[]> {
  const { client, project } = await openSession(cli, command);
  const { items } = await client.list(
    kind,
    ['instance', 'task', 'volume', 'job', 'spare'].includes(kind) ? { project } : {},
  );
  const found: string[] = [];
  for (const item of items) {
    found.push(item.metadata.name);
    if (item.kind === 'image') found.push(...item.spec.aliases);
  }
  return found;
}
