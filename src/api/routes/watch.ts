// One watch of several kinds: for browsers, which limit the number of connections.

import { Type } from 'typebox';
import { resourceDefinitions } from '../resources/index.ts';
import { queryParameters } from './parameters.ts';
import { route } from './route.ts';

const Refused = Type.Object({
  type: Type.Literal('refused', {
    description: 'sent first: the caller may not watch this kind; the other kinds continue',
  }),
  kind: Type.Enum(Object.values(resourceDefinitions).map(({ kind }) => kind)),
  message: Type.String(),
});

const Change = Type.Object({
  type: Type.Enum(['put', 'delete', 'bookmark']),
  revision: Type.Integer(),
  resource: Type.Optional(Type.Unknown({ description: 'for a deletion only its kind, name and project' })),
});

export const watchRoutes = {
  watch: route({
    id: 'watch',
    tag: 'watch',
    method: 'GET',
    path: '/v1/watch',
    access: 'self',
    summary: 'Watch several kinds of resources over one connection',
    query: {
      kinds: Type.String({ maxLength: 1024, description: 'kinds of resources: `instance,host,event`' }),
      revision: queryParameters.revision,
      epoch: queryParameters.epoch,
    },
    answers: {
      200: { description: 'one change per line, all kinds in commit order', lines: Type.Union([Change, Refused]) },
    },
    errors: ['Compacted', 'Forbidden'],
  }),
} as const;
