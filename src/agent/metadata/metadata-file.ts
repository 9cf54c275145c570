// What the metadata service says of a guest, in the guest's own folder, where its seed is too: it holds keys and user-data, so only its guest
// and root may read it.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Type } from 'typebox';
import { Check } from 'typebox/value';
import type { GuestSpec } from '../drivers/driver.ts';
import { writeWhole } from '../drivers/guest-life/guest-record.ts';
import { metadataIdOf } from '../drivers/guest-life/disk/seed.ts';
import type { GuestMetadata } from './metadata.ts';

const fileName = 'metadata.json';

const StoredMetadata = Type.Object({
  metadataId: Type.String(),
  hostname: Type.String(),
  imageName: Type.String(),
  sshKeys: Type.Array(Type.String()),
  userData: Type.String(),
  /** What an older Berth wrote has none. */
  vendorData: Type.Optional(Type.String()),
});

export async function writeMetadata(
  directory: string,
  spec: GuestSpec & { readonly vendorData: string },
): Promise<void> {
  const metadata: GuestMetadata = {
    metadataId: metadataIdOf(spec),
    hostname: spec.hostname,
    imageName: spec.imageName,
    sshKeys: spec.sshKeys,
    userData: spec.userData,
    vendorData: spec.vendorData,
  };
  await writeWhole(join(directory, fileName), JSON.stringify(metadata));
}

/** Undefined: there is none. Throws when it cannot be read. */
export async function readMetadata(directory: string): Promise<GuestMetadata | undefined> {
  let text: string;
  try {
    text = await readFile(join(directory, fileName), 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return undefined;
    throw error;
  }
  const value: unknown = JSON.parse(text);
  if (!Check(StoredMetadata, value)) throw new Error(`${join(directory, fileName)} is not what was written there`);
  return { vendorData: '', ...value };
}
