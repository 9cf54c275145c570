// What hosts report about an image: whether they have it, its size there, and why they cannot fetch it.

import type { Host, HostImage } from '../../../api/resources/host.ts';
import { type Image, imageKey } from '../../../api/resources/image.ts';
import type { Cli } from '../../cli.ts';
import { listAll } from '../../print/follow.ts';
import { type Format, printTable, printValue } from '../../print/output.ts';
import type { Session } from '../../session.ts';
import { bytes } from '../../options/units.ts';

/** A host may report this name for an earlier source: the key tells them apart. */
export function reportsOf({ metadata, spec }: Image, { status }: Host): HostImage[] {
  const wanted = imageKey(spec);
  return status.images.filter(({ name, key }) => name === metadata.name && key === wanted);
}

export function hasImage(image: Image, host: Host): boolean {
  return reportsOf(image, host).some(({ problem }) => problem === undefined);
}

export function problemsOf(image: Image, host: Host): string[] {
  if (hasImage(image, host)) return [];
  const { problem } = reportsOf(image, host).find((report) => report.problem !== undefined) ?? {};
  return problem === undefined ? [] : [`${host.metadata.name}: ${problem}`];
}

/** By image name: its size on hosts that have its current version. */
export async function sizesOnHosts(client: Session['client'], images: readonly Image[]): Promise<Map<string, number>> {
  // Access to images does not imply access to hosts.
  const { items: hosts } = await listAll(client, 'host').catch(() => ({ items: [] }));
  const sizes = new Map<string, number>();
  for (const image of images)
    for (const { sizeBytes, problem } of hosts.flatMap((host) => reportsOf(image, host)))
      if (problem === undefined)
        sizes.set(image.metadata.name, Math.max(sizeBytes, sizes.get(image.metadata.name) ?? 0));
  return sizes;
}

/** One row per host and image. */
export async function printCached(
  cli: Cli,
  output: Format,
  images: readonly Image[],
  hosts: readonly Host[],
): Promise<void> {
  const rows = images.flatMap((image) =>
    hosts.flatMap((host) =>
      host.status.images
        .filter(({ name }) => name === image.metadata.name)
        .map((cached) => ({ ...cached, host: host.metadata.name })),
    ),
  );
  rows.sort((a, b) => a.name.localeCompare(b.name) || a.host.localeCompare(b.host));
  if (output === 'json' || output === 'yaml') return printValue(cli, output, rows);
  if (output === 'name') return void cli.stdout.write(rows.map(({ host }) => `${host}\n`).join(''));
  if (rows.length === 0) return void cli.stderr.write('no host has any of these images\n');
  printTable(
    cli,
    [
      { header: 'IMAGE', value: ({ name }) => name },
      { header: 'HOST', importance: 'major', value: ({ host }) => host },
      {
        header: 'SIZE',
        value: ({ sizeBytes, problem }) => (problem === undefined ? bytes(sizeBytes) : ''),
        right: true,
      },
      { header: 'GUESTS', value: ({ guests }) => String(guests ?? 0), right: true },
      { header: 'DIGEST', importance: 'minor', value: ({ digest }) => digest.slice(0, 19) },
      { header: 'PROBLEM', importance: 'major', value: ({ problem }) => problem ?? '' },
    ],
    rows,
    output,
  );
}
