// The fleet in columns: one array per field, with one entry per host. For pages that show all hosts at once: a tenth of the size of the
// host resources.

import { type Static, Type } from 'typebox';
import { HostStateName } from '../resources/host-state.ts';

const closed = { additionalProperties: false } as const;
const column = (description: string) => Type.Array(Type.Integer(), { description });
const measured = (description: string) => Type.Array(Type.Union([Type.Integer(), Type.Null()]), { description });

export const FleetMap = Type.Object(
  {
    revision: Type.Integer({ description: 'start a watch of hosts from here to miss no change' }),
    epoch: Type.Optional(Type.String()),
    names: Type.Array(Type.String()),
    pools: Type.Array(Type.String()),
    states: Type.Array(HostStateName),
    labels: Type.Record(Type.String(), Type.Array(Type.Union([Type.String(), Type.Null()])), {
      description: 'values by requested label; null: the host does not have the label',
    }),
    consumers: column('number of instances and tasks with allocations on the host'),
    classes: Type.Record(
      Type.String(),
      Type.Object(
        { capacity: column('what can be allocated in total: (total − reserved) × ratio'), used: column('allocated') },
        closed,
      ),
    ),
    use: Type.Optional(
      Type.Object(
        { milliCpus: measured('thousandths of a CPU'), memoryMiB: measured('memory') },
        {
          ...closed,
          description:
            'what the guests of each host use together now; null: not measured; absent: this server measures no host',
        },
      ),
    ),
  },
  closed,
);
export type FleetMap = Static<typeof FleetMap>;
