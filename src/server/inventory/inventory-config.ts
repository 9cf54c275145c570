// Inventories in the configuration of the server: lists in files, and credentials of sources. Credentials belong to a source, not to an
// inventory: who may change the URL of an inventory must not be able to send them elsewhere.

import { type Static, Type } from 'typebox';
import { Name } from '../../api/resources/metadata.ts';

const closed = { additionalProperties: false } as const;
const file = (description: string) => Type.String({ minLength: 1, maxLength: 1024, description });

export const InventoryFileConfig = Type.Object(
  {
    name: Type.String({ ...Name, description: 'of the inventory; it is created when there is none' }),
    file: file('YAML or JSON: the whole list of nodes'),
  },
  closed,
);
export type InventoryFileConfig = Static<typeof InventoryFileConfig>;

export const InventoryLoginConfig = Type.Object(
  {
    origin: Type.String({
      pattern: '^https?://[^\\s/?#@]+$',
      maxLength: 512,
      description: 'sources that the credentials are for: https://source.example:8443',
    }),
    tokenFile: Type.Optional(file('file with a bearer token as its only line')),
    user: Type.Optional(
      Type.String({ pattern: '^[^\\x00-\\x1f\\x7f:]+$', maxLength: 255, description: 'with passwordFile' }),
    ),
    passwordFile: Type.Optional(file('file with the password as its only line')),
  },
  closed,
);
export type InventoryLoginConfig = Static<typeof InventoryLoginConfig>;
