// The answers of the metadata service to one guest: a pure function of the path. It serves EC2's tree of 2009-04-04, which cloud-init reads, and
// the files of a NoCloud seed beside it. It must never answer with data of another guest, so it is given one guest only.

import { nocloudTexts } from './nocloud-texts.ts';

export interface GuestMetadata {
  /** Contains the incarnation: to cloud-init, each incarnation of an instance is a new machine. */
  readonly metadataId: string;
  readonly hostname: string;
  readonly imageName: string;
  readonly sshKeys: readonly string[];
  readonly userData: string;
  readonly vendorData: string;
}

/** A directory of the tree, or the text of one of its leaves. */
type Tree = { readonly [name: string]: Tree | string };

/** `path` as it was requested, without its query. Undefined: the tree has no such path. */
export function answerMetadata(guest: GuestMetadata & { readonly address: string }, path: string): string | undefined {
  if (!path.startsWith('/')) return undefined;
  const names = path.split('/').slice(1);
  const wantsDirectory = names.at(-1) === '';
  if (wantsDirectory) names.pop();
  let found: Tree | string = root(guest);
  for (const name of names) {
    if (typeof found === 'string' || !Object.hasOwn(found, name)) return undefined;
    const next: Tree | string | undefined = found[name];
    if (next === undefined) return undefined;
    found = next;
  }
  if (typeof found !== 'string') return listing(found, names.at(-1) === 'public-keys');
  return wantsDirectory ? undefined : found;
}

function root(guest: GuestMetadata & { readonly address: string }): Tree {
  const version: Tree = {
    'meta-data': {
      'ami-id': guest.imageName,
      hostname: guest.hostname,
      'instance-id': guest.metadataId,
      'local-hostname': guest.hostname,
      'local-ipv4': guest.address,
      'public-hostname': guest.hostname,
      ...(guest.sshKeys.length === 0 ? {} : { 'public-keys': publicKeys(guest.sshKeys) }),
    },
    ...(guest.userData === '' ? {} : { 'user-data': guest.userData }),
  };
  return { '2009-04-04': version, latest: version, nocloud: nocloudTexts(guest) };
}

const publicKeys = (keys: readonly string[]): Tree =>
  Object.fromEntries(keys.map((key, i) => [String(i), { 'openssh-key': key }]));

/** One line per entry. A directory ends with a slash; as in EC2, a key is listed by number and name instead. */
function listing(directory: Tree, ofKeys: boolean): string {
  return Object.entries(directory)
    .map(([name, below]) => (ofKeys ? `${name}=key-${name}` : typeof below === 'string' ? name : `${name}/`))
    .join('\n');
}
