// The fleet as columns: one array for each field, one entry in it for each host. For pages that show all hosts at once: a tenth of the
// bytes that the hosts themselves have.

import { type Static, Type } from 'typebox';
import { HostStateName } from '../resources/host-state.ts';

const closed = { additionalProperties: false } as const;
const column = (description: string) => Type.Array(Type.Integer(), { description });

export const FleetMap = Type.Object(
  {
    revision: Type.Integer({ description: 'a watch of hosts from here misses nothing' }),
    epoch: Type.Optional(Type.String()),
    names: Type.Array(Type.String()),
    pools: Type.Array(Type.String()),
    states: Type.Array(HostStateName),
    labels: Type.Record(Type.String(), Type.Array(Type.Union([Type.String(), Type.Null()])), {
      description: 'by the label asked for; null: the host does not have it',
    }),
    consumers: column('instances and tasks with allocations there'),
    classes: Type.Record(
      Type.String(),
      Type.Object(
        { capacity: column('what can be allocated in total: (total − reserved) × ratio'), used: column('allocated') },
        closed,
      ),
    ),
  },
  closed,
);
export type FleetMap = Static<typeof FleetMap>;
