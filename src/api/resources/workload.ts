// Workload: any number of equal instances, kept as many and of the template that its owner asks for.

import { type Static, Type } from 'typebox';
import { InstanceSpec } from './instance.ts';
import { Condition, Labels, Name, type Resource, type ResourceDefinition } from './metadata.ts';

const closed = { additionalProperties: false } as const;

export const replicasMax = 100_000;

/** Of all copies: a number, or a percentage. */
const Share = (description: string) =>
  Type.Union(
    [
      Type.Integer({ minimum: 0, maximum: replicasMax }),
      Type.String({ pattern: '^(0|[1-9][0-9]{0,3})%$', description: '25%' }),
    ],
    { description },
  );

export const WorkloadTemplate = Type.Object(
  {
    labels: Type.Unsafe<Labels>({ ...Labels, description: 'of its instances, besides the label berth/workload' }),
    spec: Type.Unsafe<InstanceSpec>({ ...InstanceSpec, description: 'as of an instance' }),
  },
  closed,
);
export type WorkloadTemplate = Static<typeof WorkloadTemplate>;

export const WorkloadStrategy = Type.Object(
  {
    type: Type.Enum(['RollingUpdate', 'Recreate'], {
      default: 'RollingUpdate',
      description: 'Recreate: all old copies are removed before the first new one is created',
    }),
    maxSurge: Type.Unsafe<number | string>({
      ...Share('copies above the wanted number during an update; a percentage is rounded up'),
      default: '25%',
    }),
    maxUnavailable: Type.Unsafe<number | string>({
      ...Share('copies below the wanted number during an update; a percentage is rounded down'),
      default: '25%',
    }),
    minHealthyMs: Type.Integer({
      default: 10_000,
      minimum: 0,
      maximum: 86_400_000,
      description: 'a copy counts as available when it has been ready for this long',
    }),
    progressDeadlineMs: Type.Integer({
      default: 600_000,
      minimum: 1_000,
      maximum: 86_400_000,
      description: 'an update without progress for this long has failed',
    }),
    autoRevert: Type.Boolean({
      default: true,
      description: 'a failed update goes back to the last revision that was wholly available',
    }),
  },
  { ...closed, default: {} },
);
export type WorkloadStrategy = Static<typeof WorkloadStrategy>;

export const WorkloadSpec = Type.Object(
  {
    template: WorkloadTemplate,
    replicas: Type.Integer({ default: 1, minimum: 0, maximum: replicasMax }),
    perHost: Type.Optional(
      Type.Boolean({ description: 'one copy on each host that matches its placement, instead of replicas' }),
    ),
    strategy: WorkloadStrategy,
    paused: Type.Boolean({ default: false, description: 'an update stands still; copies that fail are replaced' }),
  },
  closed,
);
export type WorkloadSpec = Static<typeof WorkloadSpec>;

export const WorkloadStatus = Type.Object(
  {
    revision: Type.Integer({ minimum: 1, description: 'of the present template; grows with each change of it' }),
    stableRevision: Type.Optional(Type.Integer({ description: 'the newest that was wholly available' })),
    /** The update that is under way goes back to a former template by itself; it is not reverted once more. */
    reverting: Type.Optional(Type.Boolean()),
    wanted: Type.Integer({ minimum: 0 }),
    copies: Type.Integer({ minimum: 0 }),
    updated: Type.Integer({ minimum: 0, description: 'of the present revision' }),
    ready: Type.Integer({ minimum: 0 }),
    available: Type.Integer({ minimum: 0 }),
    /** The best that this update has come to, and when: a crash in a loop is no progress. */
    progress: Type.Optional(
      Type.Object(
        {
          updated: Type.Integer(),
          ready: Type.Integer(),
          available: Type.Integer(),
          old: Type.Integer(),
          atMs: Type.Integer(),
        },
        closed,
      ),
    ),
    failures: Type.Array(
      Type.Object({ ordinal: Type.Integer(), count: Type.Integer(), atMs: Type.Integer() }, closed),
      { maxItems: 1_000, description: 'copies that failed lately: they are replaced after a delay that grows' },
    ),
    conditions: Type.Array(Condition),
  },
  closed,
);
export type WorkloadStatus = Static<typeof WorkloadStatus>;

export type Workload = Resource<'workload', WorkloadSpec, WorkloadStatus>;

export const workloadDefinition = {
  kind: 'workload',
  plural: 'workloads',
  idPrefix: 'wkl',
  scope: 'project',
  description: 'Equal instances, as many as wanted.',
  name: Type.String({ ...Name, maxLength: 48 }),
  spec: WorkloadSpec,
  status: WorkloadStatus,
  verbs: ['create', 'replace', 'delete'],
} as const satisfies ResourceDefinition;

/** The label of its instances with the name of their workload. */
export const workloadLabel = 'berth/workload';
