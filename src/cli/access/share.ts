// `berth share INSTANCE`: lets somebody else into one instance for a while, without an account. Also `ls`, `extend` and `revoke`.

import { Command } from 'commander';
import type { ShareVerb } from '../../api/access.ts';
import type { Cli } from '../cli.ts';
import { attempting, usageError } from '../exit-codes.ts';
import { kindViews } from '../kinds.ts';
import { oneOf } from '../options/place-options.ts';
import { age } from '../options/units.ts';
import { listAll } from '../print/follow.ts';
import { type Format, printList } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';
import { expiryText, lifetimeOf, printIssued, revokeCommand } from './token.ts';
import { seeInstances } from '../instances/instance-advice.ts';

/** As in api/access.ts, which would load schemas. */
const verbs = ['exec', 'console', 'logs', 'screen', 'forward'] as const satisfies readonly ShareVerb[];
const usual = 'console,logs,forward';

interface ShareOptions {
  readonly verbs: string;
  readonly expires: string;
  readonly name?: string;
  readonly description?: string;
  readonly output: Format;
}

export function shareCommand(cli: Cli): Command {
  return new Command('share')
    .description('Create a token for one instance and some ways into it; it ends with the instance')
    .argument('<instance>')
    .option('--verbs <verbs>', `of ${verbs.join(', ')}`, usual)
    .option('--expires <duration>', '2h, 30m, 1d', '2h')
    .option('--name <name>', 'of the token; default: after the instance')
    .option('--description <text>', 'free text')
    .addOption(outputOption('one'))
    .addHelpText(
      'after',
      `
Examples:
  berth share web-1 --verbs console,logs,forward --expires 2h
  BERTH_TOKEN=TEXT berth console web-1 --url https://SERVER:7070   (what the other person runs)
  berth share extend share-web-1 --expires 4h
  berth share revoke share-web-1`,
    )
    .action(async (instance: string, options: ShareOptions, command: Command) => {
      const { expiresInSec, neverExpires } = lifetimeOf(options.expires);
      if (neverExpires)
        throw usageError('a share has an end', 'write --expires 2h; "berth share extend" makes it later');
      const wanted = options.verbs.split(',').map((verb) => oneOf('--verbs', verb.trim(), verbs));
      const { client, project } = await openSession(cli, command);
      const { name, description } = options;
      const issued = await attempting(
        `share instance "${instance}"`,
        () =>
          client.share(instance, {
            project,
            verbs: [...new Set(wanted)],
            ...(expiresInSec === undefined ? {} : { expiresInSec }),
            ...(name === undefined ? {} : { name }),
            ...(description === undefined ? {} : { description }),
          }),
        { NotFound: seeInstances },
      );
      await printIssued(cli, options.output, issued, `${wanted.join(', ')} of instance ${instance}`);
    })
    .addCommand(lsCommand(cli))
    .addCommand(extendCommand(cli))
    .addCommand(revokeCommand(cli).description('Revoke shares and close their open connections'));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show the shares that you may see')
    .addOption(outputOption('list'))
    .action(async (_options: unknown, command: Command) => {
      const { output } = command.optsWithGlobals<{ output: Format }>(); // the parent reads options that it has, too
      const { client } = await openSession(cli, command);
      const { items } = await attempting('list shares', () => listAll(client, 'token'));
      const nowMs = cli.clock.nowMs();
      await printList(cli, output, {
        items: items
          .filter(({ spec }) => spec.share !== undefined)
          .sort((a, b) => a.metadata.name.localeCompare(b.metadata.name)),
        columns: [
          { header: 'NAME', value: ({ metadata }) => metadata.name },
          { header: 'INSTANCE', value: ({ spec }) => `${spec.project ?? ''}/${spec.share?.instance ?? ''}` },
          { header: 'VERBS', value: ({ spec }) => spec.share?.verbs.join(',') ?? '' },
          { header: 'EXPIRES', value: ({ spec }) => expiryText(spec.expiresAtMs, nowMs) },
          ...kindViews.token({ nowMs }).filter(({ header }) => header === 'LAST USE'),
          { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
        ],
        empty: 'no shares; create one: berth share INSTANCE',
      });
    });
}

function extendCommand(cli: Cli): Command {
  return new Command('extend')
    .description('Change when a share expires, counted from now')
    .argument('<share>')
    .option('--expires <duration>', '2h, 30m, 1d', '2h')
    .action(async (name: string, _options: unknown, command: Command) => {
      const lifetime = lifetimeOf(command.optsWithGlobals<{ expires: string }>().expires);
      const { client } = await openSession(cli, command);
      const token = await attempting(`extend share "${name}"`, () => client.extendToken(name, lifetime), {
        NotFound: '"berth share ls" shows the shares',
      });
      cli.stdout.write(`${token.metadata.name} expires ${expiryText(token.spec.expiresAtMs, cli.clock.nowMs())}\n`);
    });
}
