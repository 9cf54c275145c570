// Runs one command line: finds the command, loads only its file, and turns every failure into a message and an exit
// code.

import { Command, CommanderError, Help, type Option } from 'commander';
import type { Cli } from './cli.ts';
import { inOptions } from './options/field-options.ts';
import { type CommandError, exitCodes, failureOf, isUnanswered, usageError } from './exit-codes.ts';
import { meantCommand } from './meant-command.ts';
import { type CommandEntry, commandEntries } from './registry.ts';
import { visible } from './print/terminal.ts';

/**
 * Runs `words` (without program and file name) and returns the exit code. Never throws. `more`: commands in addition to
 * the client's.
 */
export async function runProgram(
  cli: Cli,
  words: readonly string[],
  more: readonly CommandEntry[] = [],
): Promise<number> {
  const entries = [...commandEntries, ...more];
  let running: Command | undefined;
  try {
    if (words[0] === 'complete') {
      const { complete } = await import('./completion.ts');
      await complete(cli, await buildProgram(cli, entries, () => true), words.slice(words[1] === '--' ? 2 : 1));
      return exitCodes.ok;
    }
    const called = calledEntry(entries, words);
    const program = await buildProgram(cli, entries, (entry) => called.includes(entry.name));
    program.hook('preAction', (_program, command) => void (running = command));
    await program.parseAsync([...words], { from: 'user' });
    return exitCodes.ok;
  } catch (error) {
    if (error instanceof CommanderError) return usageExitCode(error); // commander has printed the message
    const command = running;
    const { text, exitCode } = failureOf(error, command && ((said) => inOptions(said, command)));
    cli.stderr.write(text);
    if (isUnanswered(error)) cli.stderr.write(await otherContexts(cli));
    return exitCode;
  }
}

/** Every command with its options and help texts, for the manual pages. */
export function wholeProgram(cli: Cli, more: readonly CommandEntry[]): Promise<Command> {
  return buildProgram(cli, [...commandEntries, ...more], () => true);
}

/** Names of the entries that the words may refer to: `image build` needs `image` too. */
function calledEntry(entries: readonly CommandEntry[], words: readonly string[]): string[] {
  const plain = words.filter((word) => !word.startsWith('-'));
  // `--context dev ps`: a word after a flag may be its value, so any word may be the command.
  const found = entries.filter(({ name, aliases = [] }) => {
    const [first = '', second] = name.split(' ');
    return plain.some(
      (word, index) =>
        [first, ...aliases].includes(word) && (second === undefined || plain.slice(index + 1).includes(second)),
    );
  });
  return found.map(({ name }) => name);
}

async function buildProgram(
  cli: Cli,
  entries: readonly CommandEntry[],
  wanted: (entry: CommandEntry) => boolean,
): Promise<Command> {
  const program = new Command('berth')
    .description(
      'Place virtual machines and containers on a fleet of hosts, keep them running, and explain each placement.',
    )
    .version(cli.version, '-V, --version', 'print the version of this program')
    .option('--context <context>', 'context to use: berth context ls')
    .option('--url <url>', 'use this server without a context; its token comes from BERTH_TOKEN')
    .option('--project <project>', 'default: the context\'s, else "default"; it need not be created first')
    .option('--insecure-http', 'send the token to other machines over plain HTTP, where it can be read')
    .configureOutput({
      writeOut: (text) => cli.stdout.write(text),
      writeErr: (text) => cli.stderr.write(text),
      outputError: (text, write) => write(inOwnWords(text)),
    })
    .configureHelp({ optionDescription: describeOption })
    .exitOverride();
  for (const entry of entries) {
    const [first = '', second] = entry.name.split(' ');
    const parent = second === undefined ? program : program.commands.find((command) => command.name() === first);
    if (!parent) continue; // below a command that is not used
    const command = wanted(entry) ? (await entry.load())(cli) : new Command(second ?? first).description(entry.summary);
    if (second === undefined) {
      command.helpGroup(entry.group);
      for (const alias of entry.aliases ?? []) if (!command.aliases().includes(alias)) command.alias(alias);
    }
    parent.addCommand(command);
  }
  program.helpCommand(false).addCommand(helpCommand(program).helpGroup('This program:'));
  inherit(program);
  return program;
}

/** Commander's message about a bad choice, in the words of all other messages about a value. */
function inOwnWords(text: string): string {
  return text
    .replace(/^error:/, 'berth:')
    .replace(/missing required argument '(.*)'$/m, 'missing argument <$1>')
    .replace(/required option '(?:-\w, )?(--[^']*)' not specified$/m, 'missing option $1')
    .replace(/too many arguments for '.*'\. Expected \d+ arguments? but got (\d+): (.*)\.$/m, unexpectedArguments)
    .replace(
      /option '(?:-\w, )?(--[\w-]+)[^']*' argument '([^]*)' is invalid\. Allowed choices are (.*)\.$/m,
      '$1 cannot be "$2"; choose one of: $3',
    )
    .replace(
      /command-argument value '([^]*)' is invalid for argument '(.*)'\. Allowed choices are (.*)\.$/m,
      '<$2> cannot be "$1"; choose one of: $3',
    );
}

/** The ones in excess are the last of those that it lists. */
function unexpectedArguments(whole: string, count: string, words: string): string {
  const expected = Number(/Expected (\d+)/.exec(whole)?.[1]);
  const extra = words.split(', ').slice(expected - Number(count));
  return `unexpected ${extra.length === 1 ? 'argument' : 'arguments'}: ${extra.join(' ')}`;
}

/** Commander's own help command accepts a single word, and shows the general help for an unknown one. */
function helpCommand(program: Command): Command {
  return new Command('help')
    .description('Show what a command does')
    .argument('[command...]')
    .action((words: readonly string[]) => {
      let found = program;
      for (const word of words) {
        const next = found.commands.find((each) => each.name() === word || each.aliases().includes(word));
        if (next === undefined) throw noSuchCommand(found, word);
        found = next;
      }
      found.outputHelp();
    });
}

function noSuchCommand(parent: Command, word: string): CommandError {
  const before = pathOf(parent);
  const meant = meantCommand(
    word,
    parent.commands.map((command) => command.name()),
  );
  const help = `"${[...before, '--help'].join(' ')}"`;
  return usageError(
    `there is no command "${[...before.slice(1), word].join(' ')}"`,
    meant === undefined
      ? `${help} shows the commands`
      : `did you mean "${[...before, meant].join(' ')}"? ${help} shows all`,
  );
}

/** `berth volume`, word by word. */
function pathOf(command: Command): string[] {
  return [...(command.parent === null ? [] : pathOf(command.parent)), command.name()];
}

const plainHelp = new Help();

/** The default of a repeatable option is an empty list, which is not worth showing. */
function describeOption(option: Option): string {
  return plainHelp.optionDescription(option).replace(' (default: [])', '');
}

/**
 * `addCommand` inherits no settings: output, exit handling and the message about unknown commands would be commander's
 * defaults. Also adds the alias `list` to `ls`.
 */
function inherit(parent: Command): void {
  if (parent.commands.length > 0)
    parent.on('command:*', ([word = '']: readonly string[]) => {
      throw noSuchCommand(parent, word);
    });
  const path = pathOf(parent).join(' ');
  parent.showHelpAfterError(`  usage: ${path} ${parent.usage()}; "${path} --help" explains it`);
  for (const child of parent.commands) {
    child.copyInheritedSettings(parent);
    if (child.name() === 'ls' && !child.aliases().includes('list')) child.alias('list');
    inherit(child);
  }
}

const contextsShown = 8;

/** A line that names the other contexts, if any: the current one may belong to a server that has ended. */
async function otherContexts(cli: Cli): Promise<string> {
  const { contextFilePath, readContexts } = await import('./context-file.ts');
  // Only an addition to a message: an unreadable file is reported by the code that needs it.
  const { current, contexts } = await readContexts(contextFilePath(cli)).catch(() => ({ current: '', contexts: {} }));
  const names = Object.keys(contexts);
  if (names.length === 0 || (names.length === 1 && names[0] === current)) return '';
  const shown = names.slice(0, contextsShown).map((name) => (name === current ? `${name} (current)` : name));
  const more = names.length > contextsShown ? ` and ${names.length - contextsShown} more` : '';
  return `  your contexts: ${visible(shown.join(', '))}${more}; choose one: berth context use NAME\n`;
}

function usageExitCode({ code }: CommanderError): number {
  return code === 'commander.helpDisplayed' || code === 'commander.version' ? exitCodes.ok : exitCodes.usage;
}
