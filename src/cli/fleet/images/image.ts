// `berth image ...`: the images of instances. src/commands/image-build.ts builds them.

import { Command } from 'commander';
import type { Image, ImageSpec } from '../../../api/resources/image.ts';
import type { Cli } from '../../cli.ts';
import { attempting } from '../../exit-codes.ts';
import { listAll } from '../../print/follow.ts';
import { show } from '../../get.ts';
import { kindViews } from '../../kinds.ts';
import { createCommand } from './image-create.ts';
import { nothingFound } from '../../print/nothing-found.ts';
import { uploadCommand } from './image-upload.ts';
import { type Format, printList } from '../../print/output.ts';
import { outputOption } from '../../print/output-option.ts';
import { replace } from '../../replace.ts';
import { forEachName, joined } from '../../instances/rm.ts';
import { removeUsed } from '../remove-used.ts';
import { openSession } from '../../session.ts';
import { addCommand } from './image-add.ts';
import { imageAdvice } from './image-advice.ts';
import { prefetchCommand, pullCommand } from './image-fetch.ts';
import { printCached, sizesOnHosts } from './image-reports.ts';

export function imageCommand(cli: Cli): Command {
  return new Command('image')
    .description('Images: show, add, upload, fetch, keep, build, remove')
    .addCommand(lsCommand(cli))
    .addCommand(showCommand(cli))
    .addCommand(addCommand(cli))
    .addCommand(uploadCommand(cli))
    .addCommand(createCommand(cli))
    .addCommand(pullCommand(cli))
    .addCommand(prefetchCommand(cli))
    .addCommand(pinCommand(cli))
    .addCommand(unpinCommand(cli))
    .addCommand(rmCommand(cli));
}

function lsCommand(cli: Cli): Command {
  return new Command('ls')
    .description('Show all images')
    .option('-l, --selector <selector>', 'only images with these labels')
    .option('--hosts', 'show which hosts have them, and how many guests use them there')
    .addOption(outputOption('list'))
    .action(async ({ output, selector, hosts }: LsOptions, command: Command) => {
      const { client } = await openSession(cli, command);
      const { items } = await attempting('list images', () =>
        listAll(client, 'image', selector === undefined ? {} : { selector }),
      );
      items.sort((a, b) => a.metadata.name.localeCompare(b.metadata.name));
      if (hosts === true)
        return printCached(cli, output, items, (await attempting('list hosts', () => listAll(client, 'host'))).items);
      const sizes =
        items.length > 0 && (output === 'table' || output === 'wide') ? await sizesOnHosts(client, items) : undefined;
      const columns = kindViews.image({
        nowMs: cli.clock.nowMs(),
        ...(sizes === undefined ? {} : { sizeByImage: sizes }),
      });
      await printList(cli, output, {
        items,
        columns,
        empty: nothingFound('images', {
          selector,
          otherwise: 'no images; create one: berth image build tiny, or berth image add NAME --source URL',
        }),
      });
    });
}

interface LsOptions {
  readonly output: Format;
  readonly selector?: string;
  readonly hosts?: true;
}

function showCommand(cli: Cli): Command {
  return new Command('show')
    .description('Show one image as it is stored')
    .argument('<image>')
    .addOption(outputOption('list', 'yaml'))
    .action(async (name: string, { output }: { output: Format }, command: Command) =>
      show(cli, await openSession(cli, command), 'image', { name, format: output }),
    );
}

function pinCommand(cli: Cli): Command {
  return changeCommand(cli, {
    verb: 'pin',
    description: 'Pin images: hosts that have them keep them, even beyond the budget of their caches',
    change: ({ spec }) => (spec.pinned === true ? undefined : { ...spec, pinned: true }),
    done: 'is pinned',
  });
}

function unpinCommand(cli: Cli): Command {
  return changeCommand(cli, {
    verb: 'unpin',
    description: 'Unpin images: hosts may remove them when no guest uses them',
    change: ({ spec: { pinned, ...spec } }) => (pinned === true ? spec : undefined),
    done: 'is no longer pinned',
  });
}

interface ChangeWords {
  readonly verb: string;
  readonly description: string;
  readonly change: (image: Image) => ImageSpec | undefined;
  readonly done: string;
}

function changeCommand(cli: Cli, { verb, description, change, done }: ChangeWords): Command {
  return new Command(verb)
    .description(description)
    .argument('<image...>')
    .action(async (names: readonly string[], _options: unknown, command: Command) => {
      const { client } = await openSession(cli, command);
      const failures = await forEachName(cli, names, async (name) => {
        await attempting(
          `${verb} image "${name}"`,
          () => replace(client, { kind: 'image', name, change }),
          imageAdvice,
        );
        cli.stdout.write(`${name} ${done}\n`);
      });
      if (failures.length > 0) throw joined(failures, names.length);
    });
}

function rmCommand(cli: Cli): Command {
  const command = new Command('rm')
    .description('Remove images; running instances are not affected')
    .argument('<image...>');
  return removeUsed(cli, command, { kind: 'image', word: 'image', advice: imageAdvice });
}
