// `berth agent`: runs the host process until it is stopped. The guests keep running without it.

import { Command } from 'commander';
import type { Cli } from '../cli/cli.ts';
import { agentCheckCommand } from './agent-check.ts';
import { agentJoinCommand } from './agent-join.ts';
import { agentConfig, type AgentFlags, runAgent, withAgentOptions } from './agent-process.ts';

export function agentCommand(cli: Cli): Command {
  return withAgentOptions(new Command('agent'))
    .description('Run the agent of a host')
    .option('--server <url>', 'default: http://127.0.0.1:7070, or where this host has joined')
    .action(async ({ server, ...own }: AgentFlags & { readonly server?: string }, command: Command) => {
      const { insecureHttp } = command.optsWithGlobals<AgentFlags>(); // `berth` itself may have parsed it
      const flags = { ...own, ...(insecureHttp ? { insecureHttp } : {}) };
      const config = await agentConfig(cli, flags, server);
      await runAgent(cli, config);
    })
    .addCommand(agentJoinCommand(cli))
    .addCommand(agentCheckCommand(cli));
}
