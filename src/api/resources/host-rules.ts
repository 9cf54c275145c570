// What an instance may require of its host, and what a host may have to keep instances away: labels, traits, taints,
// tolerations, preferences. Shapes only; the scheduler's rules give them their meaning.

import { type Static, Type } from 'typebox';
import { LabelKey, LabelValue, Name, ResourceClass } from './metadata.ts';

const closed = { additionalProperties: false } as const;

/** As in OpenStack Placement: HW_CPU_X86_AVX2, CUSTOM_FAST_DISK. */
export const Trait = Type.String({
  pattern: '^[A-Z][A-Z0-9_]{0,254}$',
  description: 'a trait in capitals, digits and "_": HW_CPU_X86_AVX2, CUSTOM_FAST_DISK',
});

export const labelOperators = ['In', 'NotIn', 'Exists', 'DoesNotExist', 'Gt', 'Lt'] as const;
export type LabelOperator = (typeof labelOperators)[number];

const LabelValues = Type.Array(LabelValue, { maxItems: 64 });

export const HostRule = Type.Object(
  {
    key: LabelKey,
    operator: Type.Enum([...labelOperators], {
      description: 'Gt and Lt compare whole numbers; NotIn also holds for hosts without the label',
    }),
    values: Type.Optional(LabelValues),
  },
  closed,
);
export type HostRule = Static<typeof HostRule>;

/** Of the host's root provider. */
export const TraitRules = Type.Object(
  {
    required: Type.Optional(Type.Array(Trait, { maxItems: 64 })),
    forbidden: Type.Optional(Type.Array(Trait, { maxItems: 64 })),
    anyOf: Type.Optional(
      Type.Array(Type.Array(Trait, { minItems: 1, maxItems: 64 }), {
        maxItems: 16,
        description: 'of each list at least one',
      }),
    ),
  },
  closed,
);
export type TraitRules = Static<typeof TraitRules>;

export const Preference = Type.Object(
  {
    weight: Type.Integer({
      minimum: -100,
      maximum: 100,
      description: 'points for a host that matches; 100: the difference between an empty and a full host',
    }),
    key: Type.Optional(LabelKey),
    operator: Type.Optional(Type.Enum([...labelOperators])),
    values: Type.Optional(LabelValues),
    trait: Type.Optional(Trait),
  },
  closed,
);
export type Preference = Static<typeof Preference>;

export const taintEffects = ['NoSchedule', 'PreferNoSchedule'] as const;
export type TaintEffect = (typeof taintEffects)[number];

export const Taint = Type.Object(
  {
    key: LabelKey,
    value: Type.Optional(LabelValue),
    effect: Type.Enum([...taintEffects], {
      description:
        'NoSchedule: only instances that tolerate it are placed here; PreferNoSchedule: other instances only when nothing else is free',
    }),
  },
  closed,
);
export type Taint = Static<typeof Taint>;

export const Toleration = Type.Object(
  {
    key: Type.Optional(Type.String({ ...LabelKey, description: 'none: every taint' })),
    value: Type.Optional(Type.String({ ...LabelValue, description: 'none: whatever the value of the taint' })),
    effect: Type.Optional(Type.Enum([...taintEffects], { description: 'none: both' })),
  },
  closed,
);
export type Toleration = Static<typeof Toleration>;

/** By resource class: the allocation ratio. */
export const AllocationRatios = Type.Record(
  Type.String({ pattern: '^[A-Z][A-Z0-9_]{0,63}$' }),
  Type.Number({ minimum: 0.01, maximum: 1000 }),
  { maxProperties: 64, additionalProperties: false },
);
export type AllocationRatios = Static<typeof AllocationRatios>;

/** The weight of each score, by the name of its rule. */
export const ScoreWeights = Type.Record(
  Type.String({ pattern: '^[a-z][a-z0-9-]{0,63}$' }),
  Type.Integer({ minimum: 0, maximum: 1000 }),
  { maxProperties: 64, additionalProperties: false },
);
export type ScoreWeights = Readonly<Static<typeof ScoreWeights>>;

/** The part of an instance's `placement` about hosts. */
export const hostRuleFields = {
  hostRules: Type.Optional(
    Type.Array(HostRule, { maxItems: 32, description: 'rules for labels of the host; all hold' }),
  ),
  traits: Type.Optional(TraitRules),
  preferences: Type.Optional(Type.Array(Preference, { maxItems: 32 })),
  avoidHosts: Type.Optional(Type.Array(Name, { maxItems: 32, description: 'hosts to use only when no other fits' })),
  tolerations: Type.Optional(Type.Array(Toleration, { maxItems: 64 })),
  dedicated: Type.Optional(
    Type.Boolean({
      description: 'only on dedicated hosts; without it, never on a host that is dedicated to no named project',
    }),
  ),
  weights: Type.Optional(ScoreWeights),
  query: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 4096,
      description:
        'resources=VCPU:1,MEMORY_MB:256&required=CUSTOM_SSD, in the syntax of OpenStack Placement for candidates, with its groups',
    }),
  ),
} as const;

/** Requests beyond the plain amounts. */
export const Gpus = Type.Object(
  {
    count: Type.Integer({ minimum: 1, maximum: 64 }),
    share: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1000,
        description: 'thousandths of one GPU, with count 1; none: whole ones',
      }),
    ),
    models: Type.Optional(
      Type.Array(Type.String({ pattern: '^[A-Za-z0-9][A-Za-z0-9 ._:-]{0,63}$' }), {
        minItems: 1,
        maxItems: 16,
        description: 'any of these: A100, 10de:20b0',
      }),
    ),
  },
  closed,
);
export type Gpus = Static<typeof Gpus>;

/** A part of a host with an inventory of its own: a GPU, a NUMA cell. */
export const ChildProvider = Type.Object(
  {
    name: Type.String({
      pattern: '^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$',
      description: 'lower-case letters, digits and "-", at most 32: gpu0, cell1',
    }),
    amounts: Type.Record(ResourceClass, Type.Integer({ minimum: 0, maximum: 2 ** 53 - 1 }), {
      maxProperties: 16,
      additionalProperties: false,
    }),
    traits: Type.Array(Trait, { default: [], maxItems: 64 }),
  },
  closed,
);
export type ChildProvider = Static<typeof ChildProvider>;

export const ChildProviders = Type.Array(ChildProvider, { maxItems: 128 });

/** The unit of GPUs: a whole GPU has 1000, so that it can be shared in thousandths. */
export const gpuClass = 'CUSTOM_GPU_MILLI';
export const gpuWhole = 1000;

/** `A100-SXM4` → `CUSTOM_GPU_A100_SXM4`. */
export function gpuModelTrait(model: string): string {
  return `CUSTOM_GPU_${model.toUpperCase().replaceAll(/[^A-Z0-9]/g, '_')}`;
}
