// The common part of every resource: identity, labels, revision. Names are for users and unique per project and kind;
// ids are never reused.

import { type Static, type TSchema, Type } from 'typebox';

/** RFC 1123 label: also a valid hostname. */
export const Name = Type.String({
  pattern: '^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$',
  maxLength: 63,
  description: 'lower-case letters, digits and "-", at most 63, beginning and ending with a letter or digit',
});

/** Names of images and sizes may contain dots, for versions. */
export const DottedName = Type.String({
  pattern: '^[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?$',
  maxLength: 63,
  description: 'lower-case letters, digits, "-" and ".", at most 63, beginning and ending with a letter or digit',
});

const labelKey = '^[A-Za-z0-9]([A-Za-z0-9._/-]{0,126}[A-Za-z0-9])?$';
const labelValue = '^([A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?)?$';

export const LabelKey = Type.String({
  pattern: labelKey,
  description: 'letters, digits, ".", "_", "/" and "-", at most 128, beginning and ending with a letter or digit',
});
export const LabelValue = Type.String({
  pattern: labelValue,
  description: 'letters, digits, ".", "_" and "-", at most 63, beginning and ending with a letter or digit',
});

export const Labels = Type.Record(LabelKey, LabelValue, {
  default: {},
  maxProperties: 64,
  additionalProperties: false,
});
export type Labels = Readonly<Record<string, string>>;

/** The form only: VCPU, MEMORY_MB, DISK_GB, CUSTOM_*. The known classes: src/api/resource-class.ts. */
export const ResourceClass = Type.String({
  pattern: '^[A-Z][A-Z0-9_]{0,63}$',
  description: 'a resource class in capitals, digits and "_": VCPU, MEMORY_MB, CUSTOM_LICENSE',
});

/** A class defined by an operator. */
export const CustomResourceClass = Type.String({
  pattern: '^CUSTOM_[A-Z0-9_]{1,56}$',
  description: 'CUSTOM_ and capitals, digits and "_": CUSTOM_LICENSE',
});

/** By resource class. */
export const Amounts = Type.Record(ResourceClass, Type.Integer({ minimum: 0, maximum: 2 ** 53 - 1 }), {
  maxProperties: 64,
  additionalProperties: false,
});

/** What is held or asked for: of VCPU also parts. */
export const HeldAmounts = Type.Record(ResourceClass, Type.Number({ minimum: 0 }), {
  maxProperties: 64,
  additionalProperties: false,
});
export type Amounts = Readonly<Record<string, number>>;

export const Metadata = Type.Object(
  {
    id: Type.String({ description: 'never used twice' }),
    name: DottedName,
    project: Type.String({ description: 'empty for resources of the fleet' }),
    revision: Type.Integer({ minimum: 0, description: 'of the commit that last wrote this resource' }),
    generation: Type.Integer({ minimum: 1, description: 'grows with every change of spec' }),
    labels: Labels,
    createdAtMs: Type.Integer({ description: 'milliseconds since 1970' }),
    deletionRequestedAtMs: Type.Optional(Type.Integer()),
    traceParent: Type.Optional(
      Type.String({ description: 'the `traceparent` of the request that created it (W3C Trace Context)' }),
    ),
  },
  { additionalProperties: false },
);
export type Metadata = Static<typeof Metadata>;

export const Condition = Type.Object(
  {
    type: Type.String(),
    status: Type.Enum(['True', 'False', 'Unknown']),
    reason: Type.String({ description: 'CamelCase code for programs' }),
    message: Type.String({ description: 'a sentence for people' }),
    sinceMs: Type.Integer(),
  },
  { additionalProperties: false },
);
export type Condition = Static<typeof Condition>;

export interface Resource<K extends string, Spec, Status> {
  readonly kind: K;
  /** Of the stored form; older ones are upgraded when read. */
  readonly schemaVersion: number;
  readonly metadata: Metadata;
  readonly spec: Spec;
  readonly status: Status;
}

/** One line of the registry: all that routes, documentation and clients need to know of a kind. */
export interface ResourceDefinition {
  readonly kind: string;
  readonly plural: string;
  readonly idPrefix: string;
  readonly scope: 'project' | 'fleet';
  readonly description: string;
  readonly name: TSchema;
  readonly spec: TSchema;
  readonly status: TSchema;
  /** The operations of the API besides reading. */
  readonly verbs: readonly ('create' | 'replace' | 'delete')[];
}
