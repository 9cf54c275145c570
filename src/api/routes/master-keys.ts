// Master keys: under which ones the data keys of a store are encrypted. Ids only, never keys.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

export const MasterKeyUse = Type.Object(
  {
    id: Type.String(),
    current: Type.Boolean({ description: 'this server encrypts data keys under it' }),
    given: Type.Boolean({ description: 'this server has it' }),
    dataKeys: Type.Integer({ description: 'that need it; at 0 it is needed for older backups only' }),
  },
  closed,
);

export const MasterKeyStatus = Type.Object(
  {
    encrypts: Type.Boolean({ description: 'false: no master key is configured, and secrets are in plain text' }),
    keys: Type.Array(MasterKeyUse),
    plainRecords: Type.Integer({ description: 'records with secrets that are yet to be encrypted' }),
  },
  closed,
);
export type MasterKeyStatus = Static<typeof MasterKeyStatus>;
