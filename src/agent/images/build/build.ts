// Builds the project's own images from Debian's packages. A build works in a folder of its own inside `directory`, publishes the
// whole image or nothing, and leaves nothing else behind; what was built before from the same recipe is used again.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { mkdir, mkdtemp, open, readdir, readFile, rm, stat } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { pathToFileURL } from 'node:url';
import { type Static, Type } from 'typebox';
import { matches } from '../../../api/parse.ts';
import type { ImageSpec } from '../../../api/resources/image.ts';
import { system } from '../../../base/system.ts';
import { buildDebian, debianBuildPackages, debianRecipe } from './build-debian.ts';
import { chooseBuildJail, unmountBelow } from './build-jail.ts';
import { type BuildContext, type BuildPackage, ImageBuildError, requirePackages } from './build-step.ts';
import { buildTiny, tinyBuildPackages, tinyRecipe } from './build-tiny.ts';
import { publish, writeSmallFile } from '../unpack/image-file.ts';
import { checkImage } from '../unpack/image-gate.ts';

export type BuildableImage = 'tiny' | 'debian-12';

/** What a bare Debian host must have for each build, and why; for the quickstart to say before it asks apt. */
export const imageBuildPackages = { tiny: tinyBuildPackages, debian: debianBuildPackages } as const;

export interface BuildOptions {
  /** Where the image goes; made if it is not there. */
  readonly directory: string;
  /** Told each step, in a few words. */
  readonly onProgress?: (step: string) => void;
  readonly signal?: AbortSignal;
  /** Build again although there is one: for Debian's newest packages. */
  readonly fresh?: boolean;
}

export interface BuiltImage {
  readonly path: string;
  readonly digest: string;
  readonly sizeBytes: number;
  /** Ready to be created as an image; its source is the file on this host. */
  readonly spec: ImageSpec;
  /** False when an earlier build was used again. */
  readonly built: boolean;
}

interface Recipe {
  readonly text: string;
  readonly packages: readonly BuildPackage[];
  /** Makes the image in the work directory and returns its path. */
  readonly build: (context: BuildContext) => Promise<string>;
  /** With a disk: one that grows to the image's size without being asked for would count against no host. */
  readonly defaults: Required<ImageSpec['defaults']>;
  /** Absent: it has no login by ssh. */
  readonly defaultUser?: string;
}

const recipes: Readonly<Record<BuildableImage, Recipe>> = {
  tiny: {
    text: tinyRecipe(),
    packages: tinyBuildPackages,
    build: buildTiny,
    defaults: { cpus: 1, memoryMiB: 128, diskGiB: 1 },
  },
  'debian-12': {
    text: debianRecipe(),
    packages: debianBuildPackages,
    build: buildDebian,
    defaults: { cpus: 1, memoryMiB: 512, diskGiB: 4 },
    defaultUser: 'debian',
  },
};

const BuildRecord = Type.Object(
  {
    recipe: Type.String(),
    file: Type.String({ pattern: '^[a-z0-9.-]+$' }),
    digest: Type.String(),
    sizeBytes: Type.Integer(),
  },
  { additionalProperties: false },
);
type BuildRecord = Static<typeof BuildRecord>;

/** Throws `ImageBuildError`; then nothing of the build is left. */
export async function buildImage(name: BuildableImage, options: BuildOptions): Promise<BuiltImage> {
  const recipe = recipes[name];
  const directory = resolve(options.directory);
  const tell = options.onProgress ?? (() => {});
  const recipeDigest = createHash('sha256').update(recipe.text).digest('hex');
  await mkdir(directory, { recursive: true });
  const before = await readBuildRecord(directory, name);
  if (before !== undefined && before.recipe === recipeDigest && options.fresh !== true) {
    if ((await sizeOf(join(directory, before.file))) === before.sizeBytes)
      return describe(directory, before, recipe, false);
  }
  await requirePackages(name, recipe.packages);
  await removeOldWork(directory, name);
  const workDirectory = await mkdtemp(join(directory, `.build-${name}-${system.pid()}-`));
  try {
    const signal = options.signal ?? new AbortController().signal;
    const made = await recipe.build({ workDirectory, jail: await chooseBuildJail(), signal, tell });
    tell('checking the image');
    const record = await publishBuild(made, { directory, name, recipeDigest });
    return describe(directory, record, recipe, true);
  } catch (error) {
    if (error instanceof ImageBuildError)
      throw new ImageBuildError(`cannot build image "${name}": ${error.message}`, { cause: error });
    throw error;
  } finally {
    await removeWork(workDirectory);
  }
}

/** A build that is in one of these directories, of this recipe or an older one. It boots: that is all it is good for. */
export async function earlierBuild(
  name: BuildableImage,
  directories: readonly string[],
): Promise<{ readonly path: string; readonly digest: string } | undefined> {
  for (const directory of directories) {
    const record = await readBuildRecord(directory, name);
    if (record === undefined) continue;
    const path = join(directory, record.file);
    if ((await sizeOf(path)) === record.sizeBytes) return { path, digest: record.digest };
  }
  return undefined;
}

/** Named by its content: a build beside this one can neither break it nor be broken. */
async function publishBuild(
  made: string,
  {
    directory,
    name,
    recipeDigest,
  }: { readonly directory: string; readonly name: BuildableImage; readonly recipeDigest: string },
): Promise<BuildRecord> {
  const file = await open(made, 'r+');
  try {
    const verdict = await checkImage(file, 'qcow2', { virtualBytesMax: 1024 ** 4 });
    if (!verdict.ok) throw new ImageBuildError(`what came out is no good image: ${verdict.reason}`);
    await file.sync();
  } finally {
    await file.close();
  }
  const hash = createHash('sha256');
  await pipeline(createReadStream(made), hash);
  const digest = hash.digest('hex');
  const record = {
    recipe: recipeDigest,
    file: `${name}-${digest.slice(0, 12)}.qcow2`,
    digest: `sha256:${digest}`,
    sizeBytes: (await stat(made)).size,
  };
  await publish(made, join(directory, record.file));
  await writeSmallFile(join(directory, `${name}.json`), JSON.stringify(record));
  return record;
}

function describe(directory: string, record: BuildRecord, recipe: Recipe, built: boolean): BuiltImage {
  const path = join(directory, record.file);
  return {
    path,
    digest: record.digest,
    sizeBytes: record.sizeBytes,
    built,
    spec: {
      source: pathToFileURL(path).href,
      checksum: record.digest,
      sizeBytes: record.sizeBytes,
      decompress: 'none',
      format: 'qcow2',
      nocloud: true,
      architecture: 'amd64',
      aliases: [],
      preload: false,
      defaults: recipe.defaults,
      ...(recipe.defaultUser === undefined ? {} : { defaultUser: recipe.defaultUser }),
    },
  };
}

async function readBuildRecord(directory: string, name: BuildableImage): Promise<BuildRecord | undefined> {
  try {
    const value: unknown = JSON.parse(await readFile(join(directory, `${name}.json`), 'utf8'));
    return matches(BuildRecord, value) ? value : undefined;
  } catch {
    return undefined; // none, or a damaged one: build
  }
}

async function sizeOf(path: string): Promise<number | undefined> {
  return stat(path).then(
    (found) => found.size,
    () => undefined,
  );
}

/** What a build that was killed left: its folder bears the number of its process. */
async function removeOldWork(directory: string, name: BuildableImage): Promise<void> {
  for (const entry of await readdir(directory)) {
    const pid = new RegExp(`^\\.build-${name}-(\\d+)-`).exec(entry)?.[1];
    if (pid === undefined || system.signal(Number(pid), 0)) continue;
    await removeWork(join(directory, entry));
  }
}

/** What is still mounted in it is not the build's: /dev of this host, for one. */
async function removeWork(workDirectory: string): Promise<void> {
  await unmountBelow(workDirectory);
  await rm(workDirectory, { recursive: true, force: true, maxRetries: 3 });
}
