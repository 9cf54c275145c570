// `berth agent check`: whether this machine can be a host, before its agent runs.

import { Command } from 'commander';
import type { HostFinding } from '../agent/check-host.ts';
import { silentLogger } from '../base/log.ts';
import type { Cli } from '../cli/cli.ts';
import { attempting, CommandExit, exitCodes } from '../cli/exit-codes.ts';
import { type Column, coloursFor, type Format, printValue, tableLines } from '../cli/print/output.ts';
import { outputOption } from '../cli/print/output-option.ts';
import { type AgentFlags, agentConfig, withAgentOptions } from './agent-process.ts';

interface CheckFlags extends AgentFlags {
  readonly server?: string;
  readonly output: Format;
}

export function agentCheckCommand(cli: Cli): Command {
  return withAgentOptions(new Command('check'))
    .description('Check whether this machine can be a host, without joining a fleet')
    .option('--server <url>', 'default: http://127.0.0.1:7070, or where this host has joined')
    .addOption(outputOption('value'))
    .action(async (own: CheckFlags, command: Command) => {
      // Options that `berth agent` has too may have been parsed by that.
      const { server, ...flags } = command.optsWithGlobals<CheckFlags>();
      const config = await agentConfig(
        cli,
        { ...flags, driver: [...new Set([...flags.driver, ...own.driver])] },
        server,
      );
      const { checkHost } = await import('../agent/check-host.ts');
      const findings = await attempting('check this machine', () => checkHost(config, { log: silentLogger }));
      if (own.output === 'json' || own.output === 'yaml') await printValue(cli, own.output, findings);
      else
        cli.stdout.write(
          `${tableLines(columns, findings, { colours: coloursFor(cli.stdout, cli.environment) }).join('\n')}\n`,
        );
      if (findings.some(({ result }) => result === 'failed')) throw new CommandExit(exitCodes.badOutcome);
    });
}

const columns: readonly Column<HostFinding>[] = [
  { header: 'CHECK', value: ({ check }) => check },
  {
    header: 'RESULT',
    value: ({ result }) => result,
    paint: (cell, { result }, colours) =>
      result === 'ok' ? colours.green(cell) : result === 'failed' ? colours.red(cell) : colours.yellow(cell),
  },
  { header: 'FOUND', value: ({ message }) => message },
];
