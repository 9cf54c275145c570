// What the metadata service says to one guest: pure, path in, answer out. The tree is EC2's of 2009-04-04, as cloud-init and the like read it,
// and beside it what a NoCloud seed has. It must never hold anything of another guest, so all it is given is one guest.

import { seedTexts } from '../drivers/guest-life/disk/seed.ts';

export interface GuestMetadata {
  /** With the incarnation in it: a new life of an instance is a new machine to cloud-init. */
  readonly metadataId: string;
  readonly hostname: string;
  readonly imageName: string;
  readonly sshKeys: readonly string[];
  readonly userData: string;
  readonly vendorData: string;
}

/** A directory of the tree, or the text of one of its leaves. */
type Tree = { readonly [name: string]: Tree | string };

/** `path` as it came, without its query. Undefined: there is no such thing. */
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
  return { '2009-04-04': version, latest: version, nocloud: seedTexts(guest) };
}

const publicKeys = (keys: readonly string[]): Tree =>
  Object.fromEntries(keys.map((key, i) => [String(i), { 'openssh-key': key }]));

/** A line for each; what has more below it ends with a slash, but keys, of which EC2 tells number and name. */
function listing(directory: Tree, ofKeys: boolean): string {
  return Object.entries(directory)
    .map(([name, below]) => (ofKeys ? `${name}=key-${name}` : typeof below === 'string' ? name : `${name}/`))
    .join('\n');
}
