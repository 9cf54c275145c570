// `berth upgrade check`: what blocks an upgrade of a fleet, or of the store of stopped servers, to this version. It changes nothing.

import { Command } from 'commander';
import { ApiError } from '../../api/errors.ts';
import type { UserClient } from '../../api/client/user-client.ts';
import type { ServerList } from '../../api/upgrade/servers.ts';
import { type UpgradeFacts, type UpgradeFinding, upgradeFindings } from '../../api/upgrade/findings.ts';
import type { Cli } from '../../cli/cli.ts';
import { attempting, CommandError, exitCodes } from '../../cli/exit-codes.ts';
import { type Format, printValue } from '../../cli/print/output.ts';
import { outputOption } from '../../cli/print/output-option.ts';
import { visible } from '../../cli/print/terminal.ts';
import { openSession } from '../../cli/session.ts';
import { recordsVersion } from '../../core/state/upgrade.ts';
import { factsOfHost } from '../../server/upgrade/facts-of-host.ts';
import { factsOfStore } from '../../server/upgrade/facts-of-store.ts';
import { openStoreOf, tellFailure } from '../store-of.ts';

interface CheckFlags {
  readonly store?: string;
  readonly output: Format;
}

export function upgradeCommand(cli: Cli): Command {
  const upgrade = new Command('upgrade').description('Check whether a fleet can be upgraded to this version');
  upgrade.addCommand(checkCommand(cli));
  return upgrade;
}

function checkCommand(cli: Cli): Command {
  return new Command('check')
    .description('List what blocks an upgrade of the fleet to this version')
    .option('--store <url>', 'read the store of stopped servers directly, instead of asking a server')
    .addOption(outputOption('value'))
    .addHelpText(
      'after',
      '\nRun this command of the new version before you upgrade any server. It changes nothing.\nThe exit code is 0 when nothing blocks the upgrade, and 7 when something does.',
    )
    .action(async ({ store, output }: CheckFlags, command: Command) => {
      const facts = store === undefined ? await factsOfServer(cli, command) : await factsOfStoreAt(cli, store);
      const findings = upgradeFindings(facts);
      const blocking = findings.filter(({ level }) => level === 'blocks');
      if (output === 'json' || output === 'yaml') await printValue(cli, output, { ...facts, findings });
      else cli.stdout.write(`${reportLines(facts, findings).join('\n')}\n`);
      if (blocking.length > 0)
        throw new CommandError(
          exitCodes.badOutcome,
          blocking.length === 1 ? 'one finding blocks the upgrade' : `${blocking.length} findings block the upgrade`,
        );
    });
}

async function factsOfStoreAt(cli: Cli, url: string): Promise<UpgradeFacts> {
  const store = await openStoreOf(url, {
    mustExist: true,
    advice: { Locked: 'or omit --store, to ask the server' },
  });
  try {
    const facts = await tellFailure('check the store', () => factsOfStore(store));
    return { target: targetOf(cli), ...facts };
  } finally {
    await store.close();
  }
}

async function factsOfServer(cli: Cli, command: Command): Promise<UpgradeFacts> {
  const { client } = await openSession(cli, command);
  return attempting('check the fleet', async () => {
    const { version } = await client.json<{ version: string }>('/v1/version');
    const notReady = await whyNotReady(client);
    const list = await serversOf(client);
    const { items } = await client.list('host');
    const answering = list?.items.some((server) => server.version === version)
      ? []
      : [{ name: 'the one that was asked', version }];
    return {
      target: targetOf(cli),
      servers: [...answering, ...(list?.items ?? [])].map(({ name, version: is }) => ({
        name,
        ...(is === undefined ? {} : { version: is }),
      })),
      ...(notReady === undefined ? {} : { notReady }),
      store: { ...(list ? { recordsVersion: list.recordsVersion } : {}), unreadable: [] },
      hosts: items.map(factsOfHost),
    };
  });
}

/** Undefined: the server is of an earlier version without this list. */
async function serversOf(client: UserClient): Promise<ServerList | undefined> {
  try {
    return await client.servers();
  } catch (error) {
    if (error instanceof ApiError && error.code === 'NotFound') return undefined;
    throw error;
  }
}

async function whyNotReady(client: UserClient): Promise<string | undefined> {
  try {
    await client.json('/readyz');
    return undefined;
  } catch (error) {
    if (error instanceof ApiError && error.code === 'Unavailable') return error.message;
    throw error;
  }
}

function targetOf({ version }: Cli): UpgradeFacts['target'] {
  return { version, recordsVersion };
}

function reportLines({ target, servers, hosts }: UpgradeFacts, findings: readonly UpgradeFinding[]): string[] {
  return [
    ...findings.flatMap(({ level, code, message, advice }) => [
      `${level === 'blocks' ? 'blocks' : 'note  '}  ${code}: ${visible(message)}`,
      ...(advice === undefined ? [] : [`        ${advice}`]),
    ]),
    `${findings.some(({ level }) => level === 'blocks') ? '' : 'nothing blocks an upgrade'} to ${target.version}: ${counted('server', versionsOf(servers))}; ${counted('agent', agentVersionsOf(hosts))}`.trimStart(),
  ];
}

function versionsOf(servers: UpgradeFacts['servers']): string[] {
  return servers.map(({ version }) => version ?? 'an unknown version');
}

function agentVersionsOf(hosts: UpgradeFacts['hosts']): string[] {
  return hosts.flatMap(({ agentVersion }) => agentVersion ?? []);
}

/** `3 servers (2 of 0.1.0, 1 of 0.2.0)`. */
function counted(word: string, versions: readonly string[]): string {
  const counts = new Map<string, number>();
  for (const version of versions) counts.set(version, (counts.get(version) ?? 0) + 1);
  const parts = [...counts].sort().map(([version, count]) => `${count} of ${version}`);
  return `${versions.length} ${word}${versions.length === 1 ? '' : 's'}${parts.length > 0 ? ` (${parts.join(', ')})` : ''}`;
}
