// `berth image build NAME`: builds one of the images that Berth has a recipe for, on this machine, and adds it to the
// fleet.

import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { Command } from 'commander';
import { ApiError } from '../api/errors.ts';
import type { Image, ImageSpec } from '../api/resources/image.ts';
import type { UserClient } from '../api/client/user-client.ts';
import type { Cli } from '../cli/cli.ts';
import { attempting, CommandError, exitCodes, Interrupted, usageError } from '../cli/exit-codes.ts';
import { startProgress } from '../cli/print/progress.ts';
import { openSession } from '../cli/session.ts';
import { bytes } from '../cli/options/units.ts';
import { describeError } from '../base/log.ts';
import { nearest } from '../api/nearest.ts';

const buildable = ['tiny', 'debian-12'] as const;
export type BuildableImage = (typeof buildable)[number];

interface BuildFlags {
  readonly directory?: string;
  readonly name?: string;
  readonly add: boolean;
  readonly rebuild?: true;
}

export function imageBuildCommand(cli: Cli): Command {
  return new Command('build')
    .description('Build an image on this machine, unless it is built already, and add it')
    .argument('<recipe>', buildable.join(' or '))
    .option(
      '--directory <directory>',
      'directory for the image; default: .berth/images beside .berth/dev, else /var/lib/berth/images',
    )
    .option('--name <name>', "name of the image; default: the recipe's")
    .option('--no-add', 'only build it; do not add it')
    .option('--rebuild', 'build it even if it is built already')
    .action(async (word: string, { directory, name, add, rebuild }: BuildFlags, command: Command) => {
      const recipe = buildable.find((known) => known === word);
      if (!recipe) {
        const meant = nearest(word, buildable);
        throw usageError(
          `Berth has no recipe for "${word}"`,
          meant ? `did you mean "${meant}"?` : `it can build: ${buildable.join(', ')}`,
        );
      }
      const session = add ? await openSession(cli, command) : undefined;
      // Before minutes of work that could be in vain.
      if (session) await attempting('reach the server', () => session.client.list('image', { limit: 1 }));
      const progress = startProgress(cli);
      let built: BuiltFile;
      try {
        built = await imageFile(recipe, {
          directory: resolve(directory ?? defaultDirectory()),
          signal: cli.interruption(),
          rebuild: rebuild === true,
          onProgress: (text) => progress.update(`${recipe}: ${text}`),
        });
      } finally {
        progress.end();
      }
      cli.stdout.write(`${built.fresh ? 'built' : 'found'} ${built.path} (${bytes(built.sizeBytes)})\n`);
      if (!session) return;
      const imageName = name ?? recipe;
      const image = await attempting(`add image "${imageName}"`, () =>
        registerImage(session.client, imageName, built.spec),
      );
      cli.stdout.write(`image ${image.metadata.name} added; try: berth run ${image.metadata.name} --wait\n`);
    });
}

/** Where agents look for `file:` images by default: the directory of a local `berth dev`, else that of this machine. */
function defaultDirectory(): string {
  return existsSync('.berth') ? join('.berth', 'images') : '/var/lib/berth/images';
}

export interface BuiltFile {
  readonly path: string;
  readonly spec: Partial<ImageSpec>;
  readonly sizeBytes: number;
  /** Built now, not found from an earlier build. */
  readonly fresh: boolean;
}

interface BuildOptions {
  readonly directory: string;
  readonly signal: AbortSignal;
  readonly rebuild?: boolean;
  readonly onProgress: (text: string) => void;
}

export async function imageFile(
  recipe: BuildableImage,
  { directory, signal, onProgress, rebuild = false }: BuildOptions,
): Promise<BuiltFile> {
  const { buildImage } = await import('../agent/images/build/build.ts');
  try {
    const { path, spec, sizeBytes, built } = await buildImage(recipe, {
      directory,
      signal,
      onProgress,
      fresh: rebuild,
    });
    return { path, spec, sizeBytes, fresh: built };
  } catch (error) {
    if (signal.aborted) throw new Interrupted();
    throw new CommandError(exitCodes.internal, describeError(error), { cause: error });
  }
}

/** Creates the image, or updates the one of this name: its labels, and whether hosts preload it, are kept. */
export async function registerImage(client: UserClient, name: string, spec: Partial<ImageSpec>): Promise<Image> {
  const current = await client.get('image', name).catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 'NotFound') return undefined;
    throw error;
  });
  if (!current) return client.create('image', { metadata: { name }, spec });
  const { labels, revision } = current.metadata;
  return client.replace('image', name, {
    metadata: { labels, revision },
    spec: { ...spec, preload: current.spec.preload },
  });
}
