// `berth agent join URL TOKEN`: makes this machine a host of a fleet, then runs its agent. Where it has joined already, it only runs: so
// the command may stand in a unit or a container, and be repeated after any failure.

import { readFile } from 'node:fs/promises';
import { Command } from 'commander';
import type { Cli } from '../cli/cli.ts';
import { attempting } from '../cli/exit-codes.ts';
import { checkedUrls } from '../cli/session.ts';
import type { AgentConfig } from '../agent/config.ts';
import { type AgentFlags, agentConfig, runAgent, withAgentOptions } from './agent-process.ts';

const advice = {
  Unauthenticated: 'have a join token made: berth host join-token create',
  Unavailable: 'the URL must be one that this machine reaches, and be named in the certificate of the server',
} as const;

export function agentJoinCommand(cli: Cli): Command {
  return withAgentOptions(new Command('join'))
    .description('Join this machine to a fleet as a host, then run its agent')
    .argument('<url>', 'of a server, https:')
    .argument('<token>', 'what "berth host join-token create" printed; @FILE reads it from a file')
    .option('--no-run', 'join only; "berth agent" then runs with what was written to the data directory')
    .action(async (given: string, tokenOrFile: string, { run, ...own }: JoinFlags, command: Command) => {
      // Options that `berth agent` has too may have been parsed by that.
      const flags: AgentFlags = { ...command.parent?.opts<AgentFlags>(), ...definedOnly(own) };
      const [url = given] = checkedUrls(given);
      const config = await agentConfig(cli, flags, url);
      await joinWith(cli, { url, token: await tokenIn(tokenOrFile), config });
      if (run) await runAgent(cli, config);
    });
}

interface JoinFlags extends AgentFlags {
  readonly run: boolean;
}

function definedOnly<T extends object>(flags: T): T {
  const given = Object.entries(flags).filter(([, value]) => !(Array.isArray(value) && value.length === 0));
  return Object.fromEntries(given) as T; // the same without empty lists
}

async function joinWith(
  cli: Cli,
  { url, token, config }: { readonly url: string; readonly token: string; readonly config: AgentConfig },
): Promise<void> {
  const { hostName, dataDirectory, tokenFile, ca } = config;
  const [{ joinFleet }, { makeFolder }] = await Promise.all([
    import('../agent/enrolment/join.ts'),
    import('../agent/agent-folders.ts'),
  ]);
  await attempting('make the data directory', () => makeFolder(dataDirectory, { passable: false }));
  const read = async (path: string | undefined): Promise<string | undefined> =>
    path === undefined ? undefined : readFile(path, 'utf8');
  const { already, serverTimeMs } = await attempting(
    `join ${url} as host "${hostName}"`,
    async () =>
      joinFleet({
        ...{ serverUrl: url, token, hostName, dataDirectory, userAgent: `berth-agent/${cli.version}` },
        ca: await read(ca),
        hostToken: (await read(tokenFile))?.trim(),
        nowMs: cli.clock.nowMs(),
      }),
    advice,
  );
  const skewMs = serverTimeMs === undefined ? 0 : cli.clock.nowMs() - serverTimeMs;
  if (Math.abs(skewMs) > 60_000)
    cli.stderr.write(`berth: the clocks of this machine and the server differ by ${Math.round(skewMs / 1000)} s\n`);
  cli.stderr.write(
    already
      ? `host ${hostName} has joined ${url} before\n`
      : `host ${hostName} joined ${url}; "berth agent --data-dir ${dataDirectory}" runs its agent from now on\n`,
  );
}

async function tokenIn(text: string): Promise<string> {
  if (!text.startsWith('@')) return text;
  return attempting(`read ${text.slice(1)}`, async () => (await readFile(text.slice(1), 'utf8')).trim());
}
