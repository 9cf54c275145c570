// `berth mcp`: the Model Context Protocol over standard input and output, for clients that start their servers themselves. It calls the
// API with the token of the context.

import { Command } from 'commander';
import type { Cli } from '../cli/cli.ts';
import { openSession } from '../cli/session.ts';
import { randomSecret } from '../base/system.ts';
import { createMcp } from '../server/mcp/mcp-server.ts';
import { PlanHash } from '../server/mcp/plan-hash.ts';
import { serveOverStdio } from '../server/mcp/stdio.ts';

export function mcpCommand(cli: Cli): Command {
  return new Command('mcp')
    .description('Speak the Model Context Protocol on standard input and output')
    .option('--allow-writes', 'offer the tools that create instances and jobs, too')
    .addHelpText(
      'after',
      '\nFor a client that starts its servers itself: its command is "berth mcp". Rights are those of the token: one with the role viewer\nis enough to look. "berth server --mcp read" serves the same over HTTP. See docs/mcp.md.',
    )
    .action(async ({ allowWrites }: { readonly allowWrites?: true }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const planHash = new PlanHash(Buffer.from(randomSecret(32)).toString('hex'));
      const { version } = cli;
      await serveOverStdio(() => createMcp({ client, project, planHash, writes: allowWrites === true, version }), {
        signal: cli.interruption(),
        warn: (line) => void cli.stderr.write(`berth: ${line}\n`),
      });
    });
}
