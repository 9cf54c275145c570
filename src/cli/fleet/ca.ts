// `berth ca ...`: the fleet's own certificate authority, and its rotation.

import { Command } from 'commander';
import type { AuthorityHost, AuthorityStatus } from '../../api/trust/authority.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { age, parseDurationMs } from '../options/units.ts';
import { type Format, printValue, tableLines } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';

export function caCommand(cli: Cli): Command {
  return new Command('ca')
    .description("The fleet's own certificate authority")
    .addCommand(statusCommand(cli))
    .addCommand(rotateCommand(cli));
}

function statusCommand(cli: Cli): Command {
  return new Command('status')
    .description('Show the trusted authorities, and the hosts that still use an old one')
    .addOption(outputOption('value'))
    .action(async ({ output }: { output?: Format }, command: Command) => {
      const { client } = await openSession(cli, command);
      await show(cli, output, await attempting('show the authority', () => client.authorityStatus()));
    });
}

interface RotateFlags {
  readonly overlap?: string;
  readonly finish?: true;
  readonly force?: true;
  readonly output?: Format;
}

function rotateCommand(cli: Cli): Command {
  return new Command('rotate')
    .description('Replace the authority: add a new one, and drop the old one with --finish once all hosts have renewed')
    .option(
      '--overlap <duration>',
      'keep trusting the old authority at least this long, so that clients learn the new one; default: 7d',
    )
    .option('--finish', 'drop the old authority')
    .option('--force', 'with --finish: even if hosts still use the old one, or the overlap is not over')
    .addOption(outputOption('value'))
    .action(async ({ overlap, finish, force, output }: RotateFlags, command: Command) => {
      if (force && !finish) throw usageError('--force requires --finish', 'add --finish, or omit --force');
      if (finish && overlap !== undefined)
        throw usageError('--overlap cannot be changed by --finish', 'omit --overlap; --force ends the overlap early');
      const { client } = await openSession(cli, command);
      const status = finish
        ? await attempting('finish the rotation of the authority', () =>
            client.finishAuthorityRotation({ force: force === true }),
          )
        : await attempting('rotate the authority', () =>
            client.rotateAuthority({ overlapMs: parseDurationMs('--overlap', overlap ?? '7d') }),
          );
      await show(cli, output, status);
    });
}

async function show(cli: Cli, output: Format | undefined, status: AuthorityStatus): Promise<void> {
  if (output === 'json' || output === 'yaml') return printValue(cli, output, status);
  const nowMs = cli.clock.nowMs();
  const { authorities, rotation, hosts } = status;
  const lines = tableLines(
    [
      { header: 'AUTHORITY', value: ({ fingerprint }) => fingerprint },
      { header: 'ISSUES FOR', value: ({ servers, hosts: ofHosts }) => issuesFor(servers, ofHosts) },
      { header: 'AGE', value: ({ createdAtMs }) => age(nowMs - createdAtMs) },
    ],
    authorities,
  );
  const by = (state: AuthorityHost['state']): string[] =>
    hosts.filter((host) => host.state === state).map(({ host }) => host);
  const [old, token] = [by('old'), by('token')];
  if (rotation !== undefined) {
    lines.push(
      '',
      `hosts with a certificate of the new authority: ${by('new').length} of ${hosts.length - token.length}`,
    );
    if (old.length > 0) lines.push(`not renewed yet: ${old.join(', ')}`);
    lines.push(
      rotation.finishAfterMs > nowMs
        ? `both are trusted for another ${age(rotation.finishAfterMs - nowMs)}; then: berth ca rotate --finish`
        : 'the overlap is over: berth ca rotate --finish drops the old authority',
    );
  }
  if (token.length > 0) lines.push('', `hosts without a certificate, with a host token: ${token.join(', ')}`);
  cli.stdout.write(`${lines.join('\n')}\n`);
}

function issuesFor(servers: boolean, hosts: boolean): string {
  return [...(servers ? ['servers'] : []), ...(hosts ? ['hosts'] : [])].join(', ');
}
