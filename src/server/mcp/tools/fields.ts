// Fields that several tools take.

import { Type } from 'typebox';
import { Name } from '../../../api/resources/metadata.ts';

export const closed = { additionalProperties: false } as const;

export const project = Type.Optional(
  Type.String({ ...Name, description: 'default: the one that this server was started with' }),
);

export const name = Type.String({ minLength: 1, maxLength: 128, description: 'name or id' });

export const cursor = Type.Optional(
  Type.String({ maxLength: 4_096, description: '"cursor" of the page before, for the next page of the same question' }),
);

export const limit = Type.Optional(
  Type.Integer({ minimum: 1, maximum: 50, description: 'how many at most; default 20' }),
);
