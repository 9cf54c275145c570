// The form of each plan. The answers are in the URL, and the berth command is built from them. Pure.

import type { Verb, AccessResource } from '../../../src/api/access.ts';
import { projectFlag } from '../resource/commands.ts';

export const planVerbs = [
  'drain',
  'evacuate',
  'rebalance',
  'migrate',
  'resize',
  'scale',
  'update',
  'undo',
  'remove',
] as const;
export type PlanVerb = (typeof planVerbs)[number];

interface FieldShape {
  readonly name: string;
  readonly label: string;
  /** Of the berth command; absent: an argument without a name. */
  readonly flag?: string;
  readonly required?: boolean;
}

export type Field = FieldShape &
  (
    | { readonly type: 'text' }
    | { readonly type: 'number'; readonly default?: number; readonly unit?: string; readonly min: number }
    | { readonly type: 'switch' }
    | { readonly type: 'choice'; readonly choices: readonly string[]; readonly default: string }
  );

export interface PlanForm {
  readonly title: string;
  readonly what: string;
  readonly command: string;
  readonly fields: readonly Field[];
  /** Names of fields, of which at least one must have an answer. */
  readonly oneOf?: readonly string[];
  readonly needs: { readonly verb: Verb; readonly resource: AccessResource };
}

const host = { name: 'host', label: 'Host', type: 'text', required: true } as const;
const instance = { name: 'instance', label: 'Instance', type: 'text', required: true } as const;
const workload = { name: 'workload', label: 'Workload', type: 'text', required: true } as const;
const project = { name: 'project', label: 'Project', type: 'text' } as const;
const movesMax = (count: number) =>
  ({
    name: 'movesMax',
    label: 'Moves at a time',
    type: 'number',
    default: count,
    min: 1,
    flag: '--moves-max',
  }) as const;

export const planForms: Readonly<Record<PlanVerb, PlanForm>> = {
  drain: {
    title: 'Drain',
    what: 'Empty a host: what runs there moves, ends or stays, and nothing new is placed there.',
    command: 'berth host drain',
    needs: { verb: 'drain', resource: 'host' },
    fields: [
      host,
      movesMax(2),
      { name: 'deadline', label: 'Deadline', type: 'number', default: 60, unit: 'm', min: 1, flag: '--deadline' },
      {
        name: 'atDeadline',
        label: 'Instances that remain then',
        type: 'choice',
        choices: ['leave', 'stop'],
        default: 'leave',
        flag: '--at-deadline',
      },
      { name: 'stopOthers', label: 'Stop what cannot move', type: 'switch', flag: '--stop-others' },
      { name: 'thenOpen', label: 'Open the host again afterwards', type: 'switch', flag: '--then-open' },
    ],
  },
  evacuate: {
    title: 'Evacuate',
    what: 'Give up a host that never returns: the host is removed, with everything that exists only there.',
    command: 'berth host evacuate',
    needs: { verb: 'delete', resource: 'host' },
    fields: [host],
  },
  rebalance: {
    title: 'Rebalance',
    what: 'Empty lightly used hosts by moving their instances to other hosts.',
    command: 'berth rebalance',
    needs: { verb: 'drain', resource: 'host' },
    fields: [
      { name: 'pool', label: 'Pool', type: 'text', flag: '--pool' },
      { name: 'budget', label: 'Moves in one plan', type: 'number', default: 20, min: 1, flag: '--budget' },
      { name: 'threshold', label: 'Threshold, %', type: 'number', default: 50, min: 1, flag: '--threshold' },
      movesMax(4),
      { name: 'coolDown', label: 'Cool-down', type: 'number', default: 60, unit: 'm', min: 0, flag: '--cool-down' },
      {
        name: 'moves',
        label: 'Instances that may leave',
        type: 'choice',
        choices: ['replace', 'live', 'cold'],
        default: 'replace',
        flag: '--moves',
      },
      {
        name: 'emptiedMin',
        label: 'Hosts emptied at least',
        type: 'number',
        default: 1,
        min: 1,
        flag: '--emptied-min',
      },
    ],
  },
  migrate: {
    title: 'Move',
    what: 'Move an instance to another host.',
    command: 'berth migrate',
    needs: { verb: 'drain', resource: 'host' },
    fields: [
      instance,
      project,
      { name: 'to', label: 'To host', type: 'text', flag: '--to' },
      { name: 'bandwidth', label: 'Bandwidth', type: 'number', unit: 'MiB', min: 1, flag: '--bandwidth' },
    ],
  },
  resize: {
    title: 'Resize',
    what: 'Change the CPUs, the memory or the disk size of an instance. A running instance is restarted.',
    command: 'berth resize',
    needs: { verb: 'update', resource: 'instance' },
    oneOf: ['cpus', 'memory', 'disk', 'size'],
    fields: [
      instance,
      project,
      { name: 'cpus', label: 'CPUs', type: 'number', min: 1, flag: '--cpus' },
      { name: 'memory', label: 'Memory', type: 'number', unit: 'MiB', min: 1, flag: '--memory' },
      { name: 'disk', label: 'Disk', type: 'number', unit: 'GiB', min: 1, flag: '--disk' },
      { name: 'size', label: 'Size', type: 'text', flag: '--size' },
    ],
  },
  scale: {
    title: 'Scale',
    what: 'Change the number of copies of a workload. The plan lists the copies that are removed.',
    command: 'berth workload scale',
    needs: { verb: 'update', resource: 'workload' },
    fields: [workload, project, { name: 'replicas', label: 'Copies', type: 'number', min: 0, required: true }],
  },
  update: {
    title: 'Update',
    what: 'Change the template of a workload: its copies are replaced in a rolling update. The plan shows what changes and which copies are replaced.',
    command: 'berth workload update',
    needs: { verb: 'update', resource: 'workload' },
    oneOf: ['image', 'size', 'cpus', 'memory'],
    fields: [
      workload,
      project,
      { name: 'image', label: 'Image', type: 'text', flag: '--image' },
      { name: 'size', label: 'Size', type: 'text', flag: '--size' },
      { name: 'cpus', label: 'CPUs', type: 'number', min: 1, flag: '--cpus' },
      { name: 'memory', label: 'Memory', type: 'number', unit: 'MiB', min: 1, flag: '--memory' },
    ],
  },
  undo: {
    title: 'Undo',
    what: 'Return to an earlier revision of a workload, in a rolling update.',
    command: 'berth workload undo',
    needs: { verb: 'update', resource: 'workload' },
    fields: [workload, project, { name: 'to', label: 'Revision', type: 'number', min: 1, flag: '--to' }],
  },
  remove: {
    title: 'Remove',
    what: 'Remove a pool, an image, a size or a group that is in use. The plan lists what uses it.',
    command: 'berth',
    needs: { verb: 'delete', resource: 'pool' },
    fields: [
      { name: 'kind', label: 'Kind', type: 'choice', choices: ['pool', 'image', 'size', 'group'], default: 'pool' },
      { name: 'name', label: 'Name', type: 'text', required: true },
      project,
    ],
  },
};

export type Answers = Readonly<Record<string, string>>;

/** The parameters of a URL that are fields of the form and differ from its defaults. */
export function answersOf({ fields }: PlanForm, search: URLSearchParams): Answers {
  const given = fields.flatMap((field) => {
    const value = search.get(field.name)?.trim() ?? '';
    return value === '' || value === defaultOf(field) ? [] : [[field.name, value]];
  });
  return Object.fromEntries(given) as Answers; // pairs of strings
}

export function defaultOf(field: Field): string {
  if (field.type === 'switch' || field.type === 'text') return '';
  return field.default === undefined ? '' : String(field.default);
}

/** What is missing or invalid; undefined: the form is complete. */
export function faultOf({ fields, oneOf }: PlanForm, answers: Answers): string | undefined {
  for (const field of fields) {
    const value = answers[field.name];
    if (field.required && value === undefined) return `${field.label} is missing`;
    if (
      field.type === 'number' &&
      value !== undefined &&
      !(Number.isInteger(Number(value)) && Number(value) >= field.min)
    )
      return `${field.label} must be an integer of at least ${field.min}`;
  }
  if (oneOf?.every((name) => answers[name] === undefined)) {
    const labels = fields.filter(({ name }) => oneOf.includes(name)).map(({ label }) => label);
    return `fill in one of: ${labels.join(', ')}`;
  }
  return undefined;
}

export function numberOf(answers: Answers, name: string): number | undefined {
  const value = answers[name];
  return value === undefined ? undefined : Number(value);
}

/** Their commands apply the change at once, unless they are asked for the plan. */
const withDryRun: ReadonlySet<PlanVerb> = new Set(['scale', 'update', 'undo', 'remove']);

/** With a hash: the command that applies the plan. */
export function planCommand(verb: PlanVerb, answers: Answers, hash?: string): string {
  const { command, fields } = planForms[verb];
  const words = fields.flatMap((field) => {
    const value = answers[field.name];
    if (field.name === 'kind') return [value ?? defaultOf(field), 'rm'];
    if (value === undefined || field.name === 'project') return [];
    const shown = `${value}${'unit' in field ? (field.unit ?? '') : ''}`;
    return field.flag === undefined ? [shown] : field.type === 'switch' ? [field.flag] : [`${field.flag} ${shown}`];
  });
  const dry = withDryRun.has(verb) ? ['--dry-run'] : [];
  const apply = hash === undefined ? dry : hash === '' ? [] : [`--apply ${hash}`];
  return `${[command, ...words, ...apply].join(' ')}${projectFlag(answers['project'])}`;
}
