// What a guest's NoCloud seed says: pure. User-data that the user gave is passed on byte by byte, never parsed.

import type { GuestSpec } from '../../driver.ts';
import { DriverError } from '../../../host/driver-error.ts';
import type { IsoFile } from './iso9660.ts';

export interface SeedInput extends Pick<GuestSpec, 'instanceId' | 'incarnation' | 'hostname' | 'sshKeys' | 'userData'> {
  /** Of the host's operator; empty: none. */
  readonly vendorData: string;
  readonly macAddress: string;
}

type SeedText = Pick<SeedInput, 'hostname' | 'sshKeys' | 'userData' | 'vendorData'> & { readonly metadataId: string };

/** The files of the seed. Keys go into meta-data, so that cloud-init adds them whatever the user-data is. */
export function seedFiles(input: SeedInput): IsoFile[] {
  for (const key of input.sshKeys) {
    if (hasControlCharacter(key)) {
      throw new DriverError(
        'Internal',
        `cannot write the seed of ${input.instanceId}: an SSH key has a line break or control character; give one key per entry`,
      );
    }
  }
  const text = new TextEncoder();
  const files = {
    ...seedTexts({ ...input, metadataId: metadataIdOf(input) }),
    'network-config': networkConfig(input.macAddress),
  };
  return Object.entries(files).map(([name, data]) => ({ name, data: text.encode(data) }));
}

/** A new incarnation is a new machine: cloud-init runs again. */
export function metadataIdOf({ instanceId, incarnation }: Pick<GuestSpec, 'instanceId' | 'incarnation'>): string {
  return `${instanceId}-${incarnation}`;
}

/** What cloud-init reads of NoCloud wherever it lies: by the names of its files. */
export function seedTexts(input: SeedText): Readonly<Record<string, string>> {
  return {
    'meta-data': metaData(input),
    'user-data': input.userData === '' ? defaultUserData(input) : input.userData,
    ...(input.vendorData === '' ? {} : { 'vendor-data': input.vendorData }),
  };
}

function metaData(input: SeedText): string {
  return lines(
    `instance-id: ${input.metadataId}`,
    `local-hostname: ${scalar(input.hostname)}`,
    ...list('public-keys', input.sshKeys),
  );
}

function defaultUserData(input: SeedText): string {
  return lines(
    '#cloud-config',
    `hostname: ${scalar(input.hostname)}`,
    'preserve_hostname: false',
    'ssh_pwauth: false',
    ...list('ssh_authorized_keys', input.sshKeys),
  );
}

/** `set-name`, because cloud-init's older renderers take the key for the interface's name. */
function networkConfig(macAddress: string): string {
  return lines(
    'version: 2',
    'ethernets:',
    '  eth0:',
    '    match:',
    `      macaddress: "${macAddress}"`,
    '    set-name: eth0',
    '    dhcp4: true',
  );
}

const lines = (...all: string[]): string => `${all.join('\n')}\n`;

const list = (name: string, values: readonly string[]): string[] =>
  values.length === 0 ? [] : [`${name}:`, ...values.map((value) => `  - ${JSON.stringify(value)}`)];

/** A plain word where YAML reads it as a string, so that a shell can read it too; else quoted (JSON strings are YAML). */
function scalar(value: string): string {
  const plain = /^[a-z][a-z0-9.-]*$/.test(value) && !/^(y|n|yes|no|on|off|true|false|null)$/.test(value);
  return plain ? value : JSON.stringify(value);
}

function hasControlCharacter(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) < 32 || text.charCodeAt(i) === 127) return true;
  return false;
}
