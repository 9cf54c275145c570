// The settings of the agent for private images: credentials for registries and URLs, by reference.

import { type Static, Type } from 'typebox';
import { imagePrefixLengthMax } from '../../../api/images/image-prefix.ts';

const file = (description: string) =>
  Type.Optional(Type.String({ pattern: '^/[^\\u0000]*$', maxLength: 1024, description }));
const command = (description: string) => Type.Optional(Type.String({ minLength: 1, maxLength: 4096, description }));

const ImageCredentialConfig = Type.Object(
  {
    prefix: Type.String({
      minLength: 1,
      maxLength: imagePrefixLengthMax,
      description:
        'a registry or a URL, with whole path segments: registry.example.com/team, https://images.example.com/private',
    }),
    username: Type.Optional(Type.String({ pattern: '^[^\\u0000-\\u001f\\u007f:]+$', maxLength: 256 })),
    passwordFile: file('file with the password in one line; read for each fetch'),
    passwordCommand: command('shell command that prints the password; run for each fetch'),
    tokenFile: file('file with a bearer token in one line, for a URL; read for each fetch'),
    tokenCommand: command('shell command that prints a bearer token, for a URL; run for each fetch'),
    insecureHttp: Type.Optional(
      Type.Boolean({ description: 'send it over plain HTTP to another machine, where it can be read' }),
    ),
  },
  { additionalProperties: false },
);
export type ImageCredentialConfig = Static<typeof ImageCredentialConfig>;

export const imageCredentialFields = {
  imageCredentials: Type.Array(ImageCredentialConfig, {
    default: [],
    maxItems: 256,
    description:
      'for private images; the longest prefix wins: [{prefix: registry.example.com/team, username: robot, passwordFile: /etc/berth/registry-password}]',
  }),
} as const;
