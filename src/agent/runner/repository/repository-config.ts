// The settings of the agent for repositories: where jobs' commits may be fetched from, with which credentials, and how much.

import { type Static, Type } from 'typebox';

export const repositoryFields = {
  repositoryNetworks: Type.Array(Type.String({ minLength: 1, maxLength: 253 }), {
    default: [],
    maxItems: 256,
    description:
      'private addresses that repositories are fetched from: subnets, addresses, host names, or "private" for all; public ones always, link-local and metadata ones never: [10.0.0.0/8, git.example.com]',
  }),
  repositoryCredentials: Type.Array(
    Type.Object(
      {
        prefix: Type.String({
          pattern: '^https?://',
          maxLength: 2048,
          description: 'scheme, host, port and whole path segments: https://git.example.com/team',
        }),
        username: Type.String({ default: 'git', pattern: '^[^\\u0000-\\u001f\\u007f]+$', maxLength: 256 }),
        passwordFile: Type.String({
          pattern: '^/[^\\u0000]*$',
          maxLength: 1024,
          description: 'file with the password or token in one line; read for each fetch',
        }),
      },
      { additionalProperties: false },
    ),
    {
      default: [],
      maxItems: 256,
      description:
        'for private repositories, by URL; the longest prefix wins: [{prefix: https://git.example.com/team, passwordFile: /etc/berth/git-token}]',
    },
  ),
  repositoryMiBMax: Type.Integer({
    default: 2048,
    minimum: 1,
    maximum: 1_048_576,
    description: 'of one fetch of a commit, and of the files of the commit',
  }),
  repositoryMsMax: Type.Integer({
    default: 600_000,
    minimum: 1000,
    maximum: 86_400_000,
    description: 'a fetch of a commit that takes longer is given up',
  }),
} as const;

const RepositoryConfig = Type.Object(repositoryFields);
export type RepositoryConfig = Static<typeof RepositoryConfig>;
