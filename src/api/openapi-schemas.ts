// Schemas in OpenAPI form: plain JSON, in which every named schema is a reference to its component. A schema is
// identified by its content, because the schema library copies a schema that it makes optional.

import type { TSchema } from 'typebox';
import { isRecord } from '../base/is-record.ts';
import { Ticket, TicketRequest } from './access-protocol.ts';
import * as agent from './agent-protocol.ts';
import { VerifyReport, VerifyRequest, Finding } from './verify.ts';
import { CandidateQuestion, Candidates } from './candidates.ts';
import { Capacity, CapacityQuestion } from './capacity.ts';
import { errorSchema } from './error-schema.ts';
import { Explanation, ReasonExplanation } from './explanation.ts';
import { ChangeEffect, Effects } from './plans/effects.ts';
import { DrainAnswer, DrainOptions, HostDrain, HostPlan, PlannedGuest, Survival } from './plans/host-plan.ts';
import { HostRestore, HostRestorePlan, RestoreAnswer, RestoreOptions } from './plans/host-restore.ts';
import {
  BlockedHost,
  HostRoll,
  PlannedRollHost,
  RollAnswer,
  RollingHost,
  RollOptions,
  RollPlan,
} from './plans/host-roll.ts';
import { RebalanceAnswer, RebalanceOptions, RebalancePlan } from './plans/rebalance.ts';
import { isUsedKind } from './plans/used-kinds.ts';
import { QueueList } from './queue.ts';
import { Check, Checks } from './resources/check.ts';
import { Container } from './resources/container.ts';
import { HostDriver, HostImage, UnknownGuest } from './resources/host.ts';
import { ChildProviders, HostRule, Preference, Trait, TraitRules } from './resources/host-rules.ts';
import { resourceDefinitions } from './resources/index.ts';
import { InstanceSpec, StartAgain } from './resources/instance.ts';
import { Mount } from './resources/mount.ts';
import {
  Amounts,
  HeldAmounts,
  Condition,
  DottedName,
  LabelKey,
  Labels,
  LabelValue,
  Metadata,
  Name,
} from './resources/metadata.ts';
import { AffinityRule, SpreadRule } from './resources/placement-rules.ts';
import { SecretReference } from './resources/secret.ts';
import { AskSpec } from './resources/task.ts';
import { ReceivedImage } from './routes/images.ts';
import { InstanceBatch, NewInstanceBatch } from './routes/instances.ts';
import { Deleted, ReplaceMetadata, resourceSchemas } from './routes/resource-schemas.ts';
import { HostProviders, LedgerProvider, ProjectUsage, UsagePage } from './usage.ts';

export type Json = Record<string, unknown>;

/** The names of components. Of two equal schemas the first name is used. */
const named: Readonly<Record<string, TSchema>> = {
  Error: errorSchema,
  ...{ Metadata, ReplaceMetadata, Deleted, Condition, Name, DottedName, Labels, LabelKey, LabelValue, Amounts },
  ...{ Trait, TraitRules, HostRule, Preference, AffinityRule, SpreadRule, ChildProviders },
  ...{ HostDriver, HostImage, UnknownGuest, Container, SecretReference },
  ...{ Check, Checks, Mount, HeldAmounts },
  ...ofKinds(),
  Placement: InstanceSpec.properties.placement,
  Gpus: InstanceSpec.properties.gpus,
  ...{ Explanation, ReasonExplanation, Ticket, TicketRequest, VerifyRequest, VerifyReport, Finding, QueueList },
  ...{ AskSpec, Candidates, CandidateQuestion, Capacity, CapacityQuestion, UsagePage, HostProviders, ProjectUsage },
  ...{ ChangeEffect, Effects, LedgerProvider },
  ...{ HostRestore, HostRestorePlan, RestoreAnswer, RestoreOptions },
  ...{ BlockedHost, HostRoll, PlannedRollHost, RollAnswer, RollingHost, RollOptions, RollPlan },
  ...{ RebalanceAnswer, RebalanceOptions, RebalancePlan },
  ...{ DrainAnswer, DrainOptions, HostDrain, HostPlan, PlannedGuest, Survival },
  ...{ NewInstanceBatch, InstanceBatch, ReceivedImage, StartAgain },
  ...Object.fromEntries(
    Object.entries(agent).flatMap(([name, value]) => (isSchema(value) ? [[name, value] as const] : [])),
  ),
};

function ofKinds(): Record<string, TSchema> {
  const all: Record<string, TSchema> = {};
  for (const { kind, spec, status } of Object.values(resourceDefinitions)) {
    const name = titleOf(kind);
    const { resource, planned, affecting, list, change, created, replaced } = resourceSchemas[kind];
    all[name] = resource;
    all[`${name}Spec`] = spec;
    all[`${name}List`] = list;
    all[`${name}Change`] = change;
    all[`New${name}`] = created;
    all[`Changed${name}`] = replaced;
    if (isUsedKind(kind)) all[`Affecting${name}`] = affecting;
    if (planned !== resource) all[`Planned${name}`] = planned;
    if (Object.keys(status['properties']).length > 0) all[`${name}Status`] = status;
  }
  return all;
}

/** `instance` → `Instance`. */
export function titleOf(kind: string): string {
  return kind.charAt(0).toUpperCase() + kind.slice(1);
}

interface Component {
  readonly name: string;
  readonly schema: Json;
}

/** The components used by one document. */
export class Components {
  readonly #byCore = new Map<string, Component>();
  readonly #used = new Map<string, Json>();

  constructor() {
    for (const [name, schema] of Object.entries(named)) {
      const plain = plainOf(schema);
      const core = coreOf(plain);
      if (!this.#byCore.has(core)) this.#byCore.set(core, { name, schema: plain });
    }
  }

  /** A schema at its place of use: a reference, if it has a name. */
  use(schema: TSchema): Json {
    return this.#written(plainOf(schema));
  }

  /** All used components, by name. */
  take(): Json {
    return Object.fromEntries([...this.#used].sort(([a], [b]) => (a < b ? -1 : 1)));
  }

  #written(schema: Json): Json {
    const component = this.#byCore.get(coreOf(schema));
    if (!component || ('default' in component.schema && !('default' in schema))) return this.#inner(schema);
    if (!this.#used.has(component.name)) {
      const json: Json = {};
      this.#used.set(component.name, json); // first, because a schema may contain itself
      Object.assign(json, this.#inner(component.schema));
    }
    const reference: Json = { $ref: `#/components/schemas/${component.name}` };
    for (const word of annotations) {
      const here = schema[word];
      if (here !== undefined && JSON.stringify(here) !== JSON.stringify(component.schema[word])) reference[word] = here;
    }
    return reference;
  }

  #inner(schema: Json): Json {
    return eachSchemaIn(withoutDefaultsRequired(schema), (inner) => (isRecord(inner) ? this.#written(inner) : inner));
  }
}

/** Keywords allowed beside a reference. */
const annotations = ['description', 'default'] as const;

function coreOf(schema: Json): string {
  const { description: _description, default: _default, ...core } = schema;
  return JSON.stringify(core, (_key, value: unknown) =>
    isRecord(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value,
  );
}

/** The schema with `change` applied to the schemas directly inside it. */
function eachSchemaIn(schema: Json, change: (inner: unknown) => unknown): Json {
  return Object.fromEntries(
    Object.entries(schema).map(([keyword, value]) => {
      if ((keyword === 'properties' || keyword === 'patternProperties') && isRecord(value))
        return [keyword, Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, change(inner)]))];
      if (Array.isArray(value) && (keyword === 'anyOf' || keyword === 'allOf')) return [keyword, value.map(change)];
      return [keyword, keyword === 'items' || keyword === 'additionalProperties' ? change(value) : value];
    }),
  );
}

/** A field with a default may be omitted in requests; one schema serves requests and responses. */
function withoutDefaultsRequired(schema: Json): Json {
  const { required, ...rest } = schema;
  const { properties } = schema;
  if (!isRecord(properties) || !Array.isArray(required)) return schema;
  const still = required.filter((name) => {
    const property = properties[String(name)];
    return !(isRecord(property) && 'default' in property);
  });
  return still.length === required.length ? schema : { ...rest, ...(still.length > 0 ? { required: still } : {}) };
}

/** Without the library's internal fields. */
function plainOf(schema: TSchema): Json {
  const copy: unknown = JSON.parse(JSON.stringify(schema));
  return isRecord(copy) ? copy : {};
}

function isSchema(value: unknown): value is TSchema {
  return isRecord(value);
}
