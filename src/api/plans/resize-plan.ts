// The plan to give an instance other CPUs, memory or disk: shown before it is applied, and applied by its hash.

import { type Static, Type } from 'typebox';
import { Amounts, DottedName } from '../resources/metadata.ts';
import { SizeSpec } from '../resources/size.ts';
import { PlanReason } from './host-plan.ts';

const closed = { additionalProperties: false } as const;
const { cpus, memoryMiB, diskGiB } = SizeSpec.properties;

export const ResizeOptions = Type.Object(
  {
    cpus: Type.Optional(cpus),
    memoryMiB: Type.Optional(memoryMiB),
    diskGiB: Type.Optional(diskGiB),
    size: Type.Optional(Type.String({ ...DottedName, description: 'a named amount; the others replace parts of it' })),
  },
  closed,
);
export type ResizeOptions = Static<typeof ResizeOptions>;

export const ResizePlan = Type.Object(
  {
    instance: Type.String(),
    instanceId: Type.String(),
    project: Type.String(),
    host: Type.Optional(Type.String({ description: 'the host where it is, and stays' })),
    before: Amounts,
    after: Amounts,
    restarts: Type.Boolean({ description: 'it runs: it is stopped, and starts again' }),
    hash: Type.String({ description: 'names this plan when it is applied' }),
    options: ResizeOptions,
    obstacles: Type.Array(PlanReason, { description: 'all reasons why it cannot be resized; empty: it can' }),
    wouldFit: Type.Array(Type.String(), {
      description: 'other hosts that have the room now; at most ten',
      maxItems: 10,
    }),
  },
  closed,
);
export type ResizePlan = Static<typeof ResizePlan>;
