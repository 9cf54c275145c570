// The login name for ssh: from the image, else the usual one for images of that name. It never fails: otherwise ssh
// decides.

import { ApiError } from '../../api/errors.ts';
import type { Image } from '../../api/resources/image.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { listAll } from '../print/follow.ts';
import type { Session } from '../session.ts';

/** Of the cloud images of distributions; cloud-init gives the instance's keys to this user. */
const usual: readonly (readonly [RegExp, string])[] = [
  [/debian/, 'debian'],
  [/ubuntu/, 'ubuntu'],
  [/fedora/, 'fedora'],
  [/rocky/, 'rocky'],
  [/alma/, 'almalinux'],
];

/** Undefined: unknown. */
export async function defaultUserOf(session: Session, { spec }: Instance): Promise<string | undefined> {
  const image = await imageOf(session, spec.image).catch(() => undefined); // deleted, or not visible with this token
  return image?.spec.defaultUser ?? usualUser(spec.image, image);
}

function usualUser(name: string, image: Image | undefined): string | undefined {
  if (image?.spec.format === 'container' || image?.spec.nocloud === false) return undefined;
  const file = image?.spec.source.split('/').at(-1) ?? '';
  const words = [name, image?.metadata.name ?? '', file].map((word) => word.toLowerCase());
  return usual.find(([pattern]) => words.some((word) => pattern.test(word)))?.[1];
}

/** By name or alias. */
async function imageOf({ client }: Session, name: string): Promise<Image | undefined> {
  try {
    return await client.get('image', name);
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'NotFound') throw error;
    return (await listAll(client, 'image')).items.find(({ spec }) => spec.aliases.includes(name));
  }
}
