// `berth webhook ...`: where events of a project are sent.

import { Command } from 'commander';
import type { WebhookSpec } from '../../api/resources/webhook.ts';
import { randomSecret } from '../../base/system.ts';
import type { Cli } from '../cli.ts';
import { attempting, isUnanswered, usageError } from '../exit-codes.ts';
import { forEachName, joined } from '../instances/rm.ts';
import { kindViews } from '../kinds.ts';
import { age, collect, parseLabels } from '../options/units.ts';
import { listAll } from '../print/follow.ts';
import { type Format, printList, printValue } from '../print/output.ts';
import { outputOption } from '../print/output-option.ts';
import { openSession } from '../session.ts';

const advice = { NotFound: '"berth webhook ls" shows the webhooks' } as const;
const secretKey = 'current';

export function webhookCommand(cli: Cli): Command {
  return new Command('webhook')
    .description('Webhooks: where events of a project are sent')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(rmCommand(cli))
    .addCommand(deliveriesCommand(cli))
    .addCommand(resendCommand(cli))
    .addCommand(testCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all webhooks')
    .addOption(outputOption('list'))
    .action(async ({ output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const { items } = await attempting('list webhooks', () => listAll(client, 'webhook', { project }));
      await printList(cli, output, {
        items: items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name)),
        columns: kindViews.webhook({ nowMs: cli.clock.nowMs() }),
        empty: 'no webhooks; create one: berth webhook create NAME --to URL',
      });
    });
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show one webhook')
    .argument('<name>')
    .addOption(outputOption('value'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const webhook = await attempting(
        `show webhook "${name}"`,
        () => client.get('webhook', name, { project }),
        advice,
      );
      return printValue(cli, output === 'json' ? 'json' : 'yaml', webhook);
    });
}

interface CreateOptions {
  readonly to: string;
  readonly event: readonly string[];
  readonly label: readonly string[];
  readonly secret: readonly string[];
  readonly allProjects?: true;
  readonly description: string;
}

function createCommand(cli: Cli): Command {
  return new Command('create')
    .description('Send events of the project to a URL')
    .argument('<name>')
    .requiredOption('--to <url>', 'https: URL of the receiver')
    .option(
      '--event <type>',
      'berth.v1.instance.Booted, berth.v1.instance.*; may be repeated; default: all',
      collect,
      [],
    )
    .option('-l, --label <key=value>', 'only events about resources with this label; may be repeated', collect, [])
    .option(
      '--secret <name/key>',
      'signs with this value of a secret; may be repeated; default: makes a new one',
      collect,
      [],
    )
    .option('--all-projects', 'events of the whole fleet')
    .option('--description <text>', 'free text', '')
    .action(async (name: string, options: CreateOptions, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const secrets = options.secret.map(referenceOf);
      const made = secrets.length > 0 ? undefined : `whsec_${Buffer.from(randomSecret(32)).toString('base64')}`;
      const secretName = `webhook-${name}`;
      if (made !== undefined)
        await attempting(
          `create secret "${secretName}" for the webhook`,
          () =>
            client.create('secret', {
              metadata: { name: secretName, project },
              spec: { description: `signs webhook ${name}`, values: { [secretKey]: made } },
            }),
          {
            AlreadyExists: `if there is no webhook "${name}" (berth webhook ls), remove the secret first: berth secret rm ${secretName}`,
          },
        );
      const labels = parseLabels('--label', options.label);
      const spec: Partial<WebhookSpec> = {
        ...{ url: options.to, description: options.description },
        secrets: made === undefined ? secrets : [{ secret: secretName, key: secretKey }],
        ...(options.event.length > 0 ? { events: [...options.event] } : {}),
        ...(options.label.length > 0 ? { labels } : {}),
        ...(options.allProjects ? { allProjects: true } : {}),
      };
      try {
        await attempting(`create webhook "${name}"`, () =>
          client.create('webhook', { metadata: { name, project }, spec }),
        );
      } catch (error) {
        // What was refused leaves nothing; without an answer the webhook may exist, and need its secret.
        if (made !== undefined && !isUnanswered(error)) await client.delete('secret', secretName, { project });
        throw error;
      }
      cli.stderr.write(`webhook ${name} created; try it: berth webhook test ${name}\n`);
      if (made !== undefined) {
        cli.stderr.write('the receiver needs this secret, which is shown only now:\n');
        cli.stdout.write(`${made}\n`);
      }
    });
}

function rmCommand(cli: Cli): Command {
  return new Command('rm')
    .description('Remove webhooks; their secrets stay')
    .argument('<webhook...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(`remove webhook "${name}"`, () => client.delete('webhook', name, { project }), advice);
        cli.stdout.write(`${name} removed; a secret "webhook-${name}" stays: berth secret rm webhook-${name}\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

function deliveriesCommand(cli: Cli): Command {
  return new Command('deliveries')
    .description('Show pending, parked and recent deliveries')
    .argument('<name>')
    .addOption(outputOption('list'))
    .action(async (name: string, { output }: { output: Format }, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const { items } = await attempting(
        `show deliveries of webhook "${name}"`,
        () => client.webhookDeliveries(name, { project }),
        advice,
      );
      const nowMs = cli.clock.nowMs();
      await printList(cli, output, {
        items: items.map((item) => ({ metadata: { name: item.event }, ...item })),
        columns: [
          { header: 'EVENT', value: (row) => row.event },
          { header: 'TYPE', importance: 'major', value: (row) => row.type },
          { header: 'SUBJECT', value: (row) => row.subject },
          { header: 'STATE', value: (row) => row.state },
          { header: 'ATTEMPTS', value: (row) => String(row.attempts), right: true },
          { header: 'LAST', value: (row) => (row.lastAtMs === undefined ? '' : `${age(nowMs - row.lastAtMs)} ago`) },
          {
            header: 'NEXT',
            value: (row) => (row.nextAtMs === undefined ? '' : `in ${age(Math.max(0, row.nextAtMs - nowMs))}`),
          },
          { header: 'WHY', importance: 'minor', value: (row) => row.error ?? '' },
        ],
        empty: 'nothing was sent yet',
      });
    });
}

function resendCommand(cli: Cli): Command {
  return new Command('resend')
    .description('Send an event again, with the same id')
    .argument('<name>')
    .argument('<event>', 'its id: berth webhook deliveries NAME')
    .action(async (name: string, event: string, _options: unknown, command: Command) => {
      const { client, project } = await openSession(cli, command);
      await attempting(`send ${event} again`, () => client.resendDelivery(name, event, { project }));
      cli.stdout.write(`${event} is sent again\n`);
    });
}

function testCommand(cli: Cli): Command {
  return new Command('test')
    .description('Send an event about the webhook itself')
    .argument('<name>')
    .action(async (name: string, _options: unknown, command: Command) => {
      const { client, project } = await openSession(cli, command);
      const { event } = await attempting(`try webhook "${name}"`, () => client.testWebhook(name, { project }), advice);
      cli.stdout.write(`${event} is sent; see what becomes of it: berth webhook deliveries ${name}\n`);
    });
}

function referenceOf(text: string): { secret: string; key: string } {
  const [, secret = '', key = ''] = /^([^/]+)\/(.+)$/.exec(text) ?? [];
  if (secret === '') throw usageError(`--secret ${text} is not NAME/KEY`, 'for example --secret hooks/current');
  return { secret, key };
}
