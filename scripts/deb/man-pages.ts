// Manual pages made from the help of the commands: berth(1), and a page for each command below it with all of its own, such as
// berth-host(1). What a page says is what `--help` says.

import type { Argument, Command, Option } from 'commander';
import type { Cli } from '../../src/cli/cli.ts';
import { wholeProgram } from '../../src/cli/program.ts';
import { processCommands } from '../../src/commands/registry.ts';
import { type Line, item, literal, page, paragraph, section, subsection } from './roff.ts';

/** By file name, `berth-run.1`. `date` as 2026-11-26. */
export async function manPages({
  version,
  date,
}: {
  readonly version: string;
  readonly date: string;
}): Promise<ReadonlyMap<string, string>> {
  const program = await wholeProgram(silentCli(version), processCommands);
  const commands = childrenOf(program);
  const heading = (title: string) => ({ title: title.toUpperCase(), date, version: `Berth ${version}` });
  return new Map([
    ['berth.1', page(heading('berth'), mainPage(program, commands))],
    ...commands.map((command): [string, string] => {
      const name = `berth-${command.name()}`;
      return [`${name}.1`, page(heading(name), commandPage(command))];
    }),
  ]);
}

function mainPage(program: Command, commands: readonly Command[]): Line[] {
  return [
    ...section('NAME'),
    ...paragraph('berth - place virtual machines and containers on a fleet of hosts'),
    ...section('SYNOPSIS'),
    ...paragraph('berth [options] <command>'),
    ...section('DESCRIPTION'),
    ...paragraph(program.description()),
    ...paragraph('Each command has a page of its own: berth help run, or man berth-run.'),
    ...options(program),
    ...section('COMMANDS'),
    ...commands.flatMap((command) => item(`berth-${command.name()}(1)`, command.description())),
    ...section('FILES'),
    ...item('/etc/berth/server.yaml', 'Configuration of the control plane: berth-server.service.'),
    ...item('/etc/berth/agent.yaml', 'Configuration of the agent of a host: berth-agent.service.'),
    ...item('/var/lib/berth', 'Data of the control plane and of the agent.'),
    ...item('~/.config/berth/config.yaml', 'Contexts: the servers of the command line, and their tokens.'),
    ...section('ENVIRONMENT'),
    ...item('BERTH_URL, BERTH_TOKEN', 'Server and token, instead of a context.'),
    ...item('BERTH_CONFIG', 'File of the contexts.'),
    ...item(
      'BERTH_SERVER_*, BERTH_AGENT_*',
      'Keys of the configuration of berth server and berth agent; berth config show names them.',
    ),
    ...section('EXIT STATUS'),
    ...item('0', 'Success.'),
    ...item('2', 'The command line or a configuration is not valid.'),
    ...item('other', 'The request failed; a message on standard error says what to do.'),
  ];
}

function commandPage(command: Command): Line[] {
  const children = childrenOf(command);
  return [
    ...section('NAME'),
    ...paragraph(`berth-${command.name()} - ${summaryOf(command)}`),
    ...section('SYNOPSIS'),
    ...[command, ...children].filter(isRunnable).flatMap((each) => paragraph(usageOf(each))),
    ...section('DESCRIPTION'),
    ...paragraph(command.description()),
    ...(command.aliases().length > 0 ? paragraph(`Also: ${command.aliases().join(', ')}.`) : []),
    ...args(command),
    ...options(command),
    ...notes(command),
    ...(children.length > 0 ? section('COMMANDS') : []),
    ...children.flatMap((child) => below(child)),
    ...section('SEE ALSO'),
    ...paragraph('berth(1)'),
  ];
}

/** A subcommand, with its own subcommands. */
function below(command: Command): Line[] {
  const lines = [
    ...subsection(usageOf(command)),
    ...paragraph(command.description()),
    ...args(command, false),
    ...options(command, false),
    ...notes(command),
  ];
  return [...lines, ...childrenOf(command).flatMap(below)];
}

function args(command: Command, headed = true): Line[] {
  const described = command.registeredArguments.filter(({ description }) => description !== '');
  if (described.length === 0) return [];
  const help = command.createHelp();
  return [
    ...(headed ? section('ARGUMENTS') : []),
    ...described.flatMap((each: Argument) => item(help.argumentTerm(each), help.argumentDescription(each))),
  ];
}

function options(command: Command, headed = true): Line[] {
  const help = command.createHelp();
  const shown = help.visibleOptions(command).filter(({ long }) => long !== '--help');
  if (shown.length === 0) return [];
  return [
    ...(headed ? section('OPTIONS') : []),
    ...shown.flatMap((option: Option) => item(help.optionTerm(option), help.optionDescription(option))),
  ];
}

/** The text after the help, such as examples. */
function notes(command: Command): Line[] {
  let whole = '';
  command.configureOutput({ writeOut: (text) => (whole += text) });
  command.outputHelp();
  const after = whole.slice(command.helpInformation().length).trim();
  return after === '' ? [] : literal(after);
}

function childrenOf(command: Command): Command[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .filter((child) => child.name() !== 'help');
}

/** A noun such as `host` only leads to its commands. */
function isRunnable(command: Command): boolean {
  return childrenOf(command).length === 0 || command.registeredArguments.length > 0 || command.options.length > 0;
}

function usageOf(command: Command): string {
  const path: string[] = [];
  for (let each: Command | null = command; each !== null; each = each.parent) path.unshift(each.name());
  return [...path, command.usage()].join(' ').replace(' [options]', command.options.length > 0 ? ' [options]' : '');
}

/** The line that apropos(1) reads has no full stop, and one line only. */
function summaryOf(command: Command): string {
  return command.description().split('\n')[0]?.replace(/\.$/, '') ?? '';
}

/** A command line in which no command is run. */
function silentCli(version: string): Cli {
  const nothing = { write: () => true, isTTY: false };
  const refuse = (): never => {
    throw new Error('manual pages are made without running anything');
  };
  return {
    stdout: nothing,
    stderr: nothing,
    stdin: { [Symbol.asyncIterator]: refuse },
    environment: {},
    homeDirectory: '/nonexistent',
    clock: { nowMs: refuse, monotonicMs: refuse, setTimer: refuse },
    fetch: refuse,
    runProgram: refuse,
    self: ['berth'],
    version,
    interruption: refuse,
  };
}
