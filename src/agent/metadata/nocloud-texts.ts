// The NoCloud files of one guest, which its seed disk and the metadata service both serve. User-data of the user is passed on byte by byte and
// never parsed.

interface IncarnationId {
  readonly instanceId: string;
  readonly incarnation: number;
}

interface NocloudInput {
  readonly metadataId: string;
  readonly hostname: string;
  readonly sshKeys: readonly string[];
  /** Empty: none was given. */
  readonly userData: string;
  /** Of the host's operator; empty: none. */
  readonly vendorData: string;
}

/** Each incarnation has its own id, so that cloud-init runs again on a new one. */
export function metadataIdOf({ instanceId, incarnation }: IncarnationId): string {
  return `${instanceId}-${incarnation}`;
}

/** The files by name, as cloud-init's NoCloud source reads them from a disk or over HTTP. */
export function nocloudTexts(input: NocloudInput): Readonly<Record<string, string>> {
  return {
    'meta-data': metaData(input),
    'user-data': input.userData === '' ? defaultUserData(input) : input.userData,
    ...(input.vendorData === '' ? {} : { 'vendor-data': input.vendorData }),
  };
}

function metaData(input: NocloudInput): string {
  return lines(
    `instance-id: ${input.metadataId}`,
    `local-hostname: ${scalar(input.hostname)}`,
    ...list('public-keys', input.sshKeys),
  );
}

function defaultUserData(input: NocloudInput): string {
  return lines(
    '#cloud-config',
    `hostname: ${scalar(input.hostname)}`,
    'preserve_hostname: false',
    'ssh_pwauth: false',
    ...list('ssh_authorized_keys', input.sshKeys),
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
