// The flag for private images. It names a secret: a password on the command line would be seen in process lists.

import type { Command } from 'commander';
import type { ImageCredential } from '../../api/resources/image-credential.ts';
import { usageError } from '../exit-codes.ts';
import { collect } from './units.ts';

export interface ImageCredentialOptions {
  readonly imageCredential: readonly string[];
}

export function withImageCredentialOption(command: Command): Command {
  return command.option(
    '--image-credential <prefix=user:secret/key>',
    'for private images: a registry or URL, and the secret with the password of the user; PREFIX=SECRET/KEY for a bearer token; may be repeated',
    collect,
    [],
  );
}

export function imageCredentialsOf({ imageCredential }: ImageCredentialOptions): {
  readonly imageCredentials?: ImageCredential[];
} {
  if (imageCredential.length === 0) return {};
  return { imageCredentials: imageCredential.map(parseCredential) };
}

function parseCredential(text: string): ImageCredential {
  const [, prefix, username, secret, key] = /^(.+)=(?:([^:=]+):)?([^/:=]+)\/([^/:=]+)$/.exec(text) ?? [];
  if (prefix === undefined || secret === undefined || key === undefined)
    throw usageError(
      '--image-credential does not name a prefix and a value of a secret', // not what was given: it may be a password
      'write --image-credential registry.example.com/team=USER:SECRET/KEY',
    );
  return { prefix, ...(username === undefined ? {} : { username }), secret, key };
}
