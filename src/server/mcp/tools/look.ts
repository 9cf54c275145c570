// Tools that look: list, show, explain, queue and capacity.

import { Type } from 'typebox';
import type { Kind } from '../../../api/resources/index.ts';
import { cursorOf, nextOf } from '../cursor.ts';
import { tool } from '../tool.ts';
import { cleanValue, fitting } from '../untrusted.ts';
import { closed, cursor, limit, name, project } from './fields.ts';

/** What a model may look at: no credentials, and none of their names. */
const LookedAt = Type.Enum([
  'instance',
  'workload',
  'job',
  'task',
  'spare',
  'volume',
  'group',
  'host',
  'pool',
  'image',
  'size',
  'project',
  'event',
] satisfies Kind[]);

const fleetWide: ReadonlySet<Kind> = new Set<Kind>(['host', 'pool', 'image', 'size', 'project']);

export const listTool = tool({
  name: 'list',
  title: 'List resources',
  description:
    'Lists resources of one kind, with their phase and conditions. For events, "subject" narrows to one resource. Use "show" for all fields of one.',
  input: Type.Object(
    {
      kind: LookedAt,
      project,
      selector: Type.Optional(Type.String({ maxLength: 1_024, description: 'by labels: tier=web,zone!=a,!old' })),
      subject: Type.Optional(Type.String({ maxLength: 128, description: 'of events: name or id of their subject' })),
      limit,
      cursor,
    },
    closed,
  ),
  async run({ kind, limit: count = 20, cursor: at, ...asked }, { client, project: own }) {
    const question = JSON.stringify([kind, asked]);
    const next = nextOf(question, at);
    const page = await client.list(kind, {
      ...asked,
      ...(fleetWide.has(kind) ? { project: undefined } : { project: asked.project ?? own }),
      limit: count,
      ...(next === undefined ? {} : { continue: next }),
    });
    const items = page.items.map((each) => cleanValue(summaryOf(each)));
    const shown = fitting(items);
    const cut = items.length - shown.length;
    return {
      facts: {
        count: shown.length,
        cursor: cut > 0 ? undefined : cursorOf(question, page.continue),
        ...(cut > 0 ? { more: `${cut} of this page did not fit: ask with limit ${shown.length}` } : {}),
      },
      untrusted: shown,
    };
  },
});

interface Listed {
  readonly metadata: { readonly name: string; readonly project: string; readonly labels: unknown };
  readonly spec: object;
  readonly status: object;
}

/** Of a list: enough to choose from. */
function summaryOf({ metadata, spec, status }: Listed): Record<string, unknown> {
  const { name: called, project: of, labels } = metadata;
  return {
    name: called,
    ...(of === '' ? {} : { project: of }),
    labels,
    ...picked(spec, specFields),
    ...picked(status, statusFields),
  };
}

const specFields = [
  'image',
  'size',
  'cpus',
  'memoryMiB',
  'diskGiB',
  'replicas',
  'pool',
  'paused',
  'subject',
  'type',
  'reason',
  'message',
];
const statusFields = ['phase', 'host', 'address', 'conditions', 'exitCode', 'heldUntilMs', 'agentVersion'];

function picked(from: object, fields: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(Object.entries(from).filter(([field]) => fields.includes(field)));
}

export const showTool = tool({
  name: 'show',
  title: 'Show one resource',
  description: 'Shows all fields of one resource, without user-data and other secrets.',
  input: Type.Object({ kind: LookedAt, name, project }, closed),
  async run({ kind, name: called, project: asked }, { client, project: own }) {
    const shown = await client.get(kind, called, fleetWide.has(kind) ? {} : { project: asked ?? own });
    return { facts: { kind }, untrusted: cleanValue({ ...shown, spec: withoutPrograms(shown.spec) }) };
  },
});

/** User-data, environments and scripts may contain secrets: a model has no need of them. */
function withoutPrograms(spec: object): Record<string, unknown> {
  const shown = Object.entries(spec).filter(([field]) => !hiddenFields.has(field));
  return Object.fromEntries(
    shown.map(([field, value]) => [field, hasSpec(field, value) ? withoutPrograms(value) : value]),
  );
}

/** A workload has the spec of its copies in `template.spec`. */
function hasSpec(field: string, value: unknown): value is object {
  return (field === 'template' || field === 'spec') && typeof value === 'object' && value !== null;
}

const hiddenFields: ReadonlySet<string> = new Set(['userData', 'env', 'script', 'run', 'containers', 'cloudInit']);

export const explainTool = tool({
  name: 'explain',
  title: 'Explain a placement',
  description:
    'Says why an instance is where it is, or why it waits: host by host, the nearest changes that would help, its place in the queue.',
  input: Type.Object({ name, project, limit, cursor }, closed),
  async run({ name: called, project: asked, limit: count = 20, cursor: at }, { client, project: own }) {
    const question = JSON.stringify(['explain', called, asked]);
    const next = nextOf(question, at);
    const { continue: following, ...explanation } = await client.explain(called, {
      project: asked ?? own,
      limit: count,
      ...(next === undefined ? {} : { continue: next }),
    });
    return { facts: { cursor: cursorOf(question, following) }, untrusted: cleanValue(explanation) };
  },
});

export const queueTool = tool({
  name: 'queue',
  title: 'Show the queue',
  description: 'Lists what waits for a host, in the order in which it will be placed, and why each waits.',
  input: Type.Object({ project, limit }, closed),
  async run({ project: asked, limit: count = 20 }, { client }) {
    const queue = await client.queue({ ...(asked === undefined ? {} : { project: asked }), limit: count });
    return { facts: {}, untrusted: cleanValue(queue) };
  },
});

export const capacityTool = tool({
  name: 'capacity',
  title: 'Ask how many more fit',
  description:
    'Says how many more instances with the given resources fit in the fleet; without resources, how many of each size. With "losses", also whether the fleet survives the loss of that number of hosts.',
  input: Type.Object(
    {
      cpus: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_024 })),
      memoryMiB: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 26 })),
      diskGiB: Type.Optional(Type.Integer({ minimum: 1, maximum: 2 ** 20 })),
      size: Type.Optional(Type.String({ maxLength: 64 })),
      pool: Type.Optional(Type.String({ maxLength: 64 })),
      project,
      losses: Type.Optional(Type.Integer({ minimum: 1, maximum: 2, description: 'this many hosts at once' })),
    },
    closed,
  ),
  async run({ losses, pool, project: asked, ...room }, { client, project: own }) {
    const spec = { ...room, ...(pool === undefined ? {} : { placement: { pool } }) };
    const capacity = await client.capacity({
      ...(Object.keys(spec).length === 0 ? {} : { project: asked ?? own, spec }),
      ...(losses === undefined ? {} : { losses }),
    });
    return { facts: {}, untrusted: cleanValue(capacity) };
  },
});
