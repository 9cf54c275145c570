// The metadata of one guest, stored in the guest's own folder beside its seed. The file holds keys and user-data, so only the agent's user may
// read it.

import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Type } from 'typebox';
import { Check } from 'typebox/value';
import { writeWhole } from '../host/write-whole.ts';
import type { GuestMetadata } from './metadata.ts';
import { metadataIdOf } from './nocloud-texts.ts';

const fileName = 'metadata.json';

const StoredMetadata = Type.Object({
  metadataId: Type.String(),
  hostname: Type.String(),
  imageName: Type.String(),
  sshKeys: Type.Array(Type.String()),
  userData: Type.String(),
  /** Files of older versions have none. */
  vendorData: Type.Optional(Type.String()),
});

export async function writeMetadata(
  directory: string,
  spec: Omit<GuestMetadata, 'metadataId'> & Parameters<typeof metadataIdOf>[0],
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

/** Undefined: the guest has none. Throws when it cannot be read. */
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
