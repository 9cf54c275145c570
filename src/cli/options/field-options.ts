// API errors name fields of a spec; users know the options they typed. One table maps fields to options. Only texts for
// people change: with `-o json` or `yaml` the API's paths stay.

import type { Command } from 'commander';
import { checkNames } from '../../api/resources/check.ts';
import { age } from './units.ts';

interface Row {
  /** `[]` for any index. */
  readonly field: string;
  /** The first one that the command has; `<name>` for an argument. */
  readonly names: readonly string[];
  /** Of the field's number; the option's own value may have another unit. */
  readonly unit?: string;
  /**
   * `keys`: the rest is a key that also appears in the option (`--resource CUSTOM_X`); `values`: an index counts the
   * option's values.
   */
  readonly below?: 'keys' | 'values';
}

const keys = { below: 'keys' } as const;
const values = { below: 'values' } as const;

function row(field: string, names: string | readonly string[], more: Pick<Row, 'unit' | 'below'> = {}): Row {
  return { field, names: typeof names === 'string' ? [names] : names, ...more };
}

export const fieldRows: readonly Row[] = [
  row('metadata.name', ['--name', '<name>']),
  row('metadata.labels', '--label', keys),
  // Amounts and location: instances, tasks, sizes, candidates.
  row('spec.image', ['--image', '<image>']),
  row('spec.size', '--size'),
  row('spec.cpus', '--cpus'),
  row('spec.memoryMiB', '--memory', { unit: 'MiB' }),
  row('spec.diskGiB', '--disk', { unit: 'GiB' }),
  row('spec.resources', '--resource', keys),
  row('spec.gpus', '--gpus'),
  row('spec.gpus.share', '--gpu-share'),
  row('spec.gpus.models', '--gpu-model'),
  row('spec.numaCells', '--numa-cells'),
  row('spec.firmware', '--firmware'),
  row('spec.tpm', '--tpm'),
  row('spec.placement.profile', '--profile'),
  row('spec.placement.pool', '--pool'),
  row('spec.placement.task', '--task'),
  row('spec.placement.group', '--group'),
  row('spec.placement.affinity', '--affinity', values),
  row('spec.placement.antiAffinity', '--anti-affinity', values),
  row('spec.placement.spread', '--spread', values),
  row('spec.placement.maxPerHost', '--max-per-host'),
  row('spec.placement.hostLabels', '--host-label', keys),
  row('spec.placement.driver', '--driver'),
  row('spec.placement.hostRules', '--host-rule', values),
  row('spec.placement.traits', '--trait'),
  row('spec.placement.preferences', '--prefer', values),
  row('spec.placement.tolerations', '--tolerate', values),
  row('spec.placement.dedicated', '--dedicated'),
  row('spec.placement.weights', '--weight', keys),
  row('spec.placement.query', '--query'),
  row('spec.ttlMs', ['--for', '--ttl', '<duration>']),
  row('spec.expiresAtMs', '--expires'),
  row('spec.stopGraceMs', ['--stop-grace', '--grace'], { unit: 'ms' }),
  row('spec.onHostLoss', '--on-host-loss'),
  row('spec.selfStop', '--self-stop'),
  row('spec.protected', '--protect'),
  // Instances.
  row('spec.ports', '--publish', values),
  row('spec.containers[].command', '--command'),
  row('spec.containers[].args', '--arg'),
  row('spec.containers[].cpus', '--cpus'),
  row('spec.containers[].env', '--env', keys),
  row('spec.containers[].mounts', '--mount', values),
  row('spec.hostPaths', '--host-path', values),
  row('spec.volumes', '--volume', values),
  ...checkNames.flatMap((name) => [
    row(`spec.checks.${name}.tcp.port`, '--health-tcp'),
    row(`spec.checks.${name}.http`, '--health-http'),
    row(`spec.checks.${name}.exec`, '--health-exec'),
    row(`spec.checks.${name}.image`, '--health-image'),
    row(`spec.checks.${name}.periodMs`, '--health-period', { unit: 'ms' }),
    row(`spec.checks.${name}.timeoutMs`, '--health-timeout', { unit: 'ms' }),
    row(`spec.checks.${name}.failures`, '--health-failures'),
  ]),
  row('spec.hostname', '--hostname'),
  row('spec.sshKeys', '--ssh-key'),
  row('spec.userData', '--user-data'),
  row('spec.restartPolicy', '--restart'),
  row('spec.restart.delayMs', '--restart-delay', { unit: 'ms' }),
  row('spec.restart.delayMsMax', '--restart-delay-max', { unit: 'ms' }),
  row('spec.restart.limit', '--restart-limit'),
  row('spec.restart.disk', '--restart-disk'),
  row('spec.priority', '--priority'),
  row('spec.preemption', '--preempt'),
  row('spec.gang', '--gang'),
  row('spec.exclusive', '--exclusive'),
  // Jobs.
  row('spec.label', '<label>'),
  row('spec.script', '<command>'),
  row('spec.driver', '--driver'),
  row('spec.env', '--env', keys),
  row('spec.repo', '--repo'),
  row('spec.repo.url', '--repo'),
  row('spec.repo.commit', '--commit'),
  row('spec.repo.path', '--path'),
  row('spec.timeoutMs', '--timeout', { unit: 'ms' }),
  row('spec.retries.max', '--retries'),
  row('spec.retries.on', '--retry-on', values),
  row('spec.holdOnFailureMs', '--hold', { unit: 'ms' }),
  row('spec.artifacts', '--artifacts', values),
  row('spec.supersedes', '--supersedes'),
  // Volumes and images.
  row('spec.sizeGiB', ['--size', '<size>'], { unit: 'GiB' }),
  row('spec.host', '--host'),
  row('spec.source', ['--source', '--from']),
  row('spec.mirrors', '--mirror', values),
  row('spec.checksum', '--checksum'),
  row('spec.sizeBytes', '--size-bytes'),
  row('spec.format', '--format'),
  row('spec.decompress', '--decompress'),
  row('spec.architecture', '--architecture'),
  row('spec.backend', '--driver'),
  row('spec.aliases', '--alias', values),
  row('spec.defaultUser', '--default-user'),
  row('spec.preload', '--preload'),
  row('spec.pinned', '--pin'),
  row('spec.pullPolicy', '--pull'),
  row('spec.defaults.cpus', ['--default-cpus', '--cpus']),
  row('spec.defaults.memoryMiB', ['--default-memory', '--memory'], { unit: 'MiB' }),
  row('spec.defaults.diskGiB', '--disk', { unit: 'GiB' }),
  // Hosts.
  row('spec.dedicated', '--dedicated'),
  row('spec.dedicatedTo', '--dedicated-to'),
  row('spec.instancesMax', '--instances-max'),
  row('spec.traits', '--trait'),
  row('spec.reserved', '--reserve', keys),
  row('spec.inventory', '--reserve', keys),
  row('spec.allocationRatios', '--overcommit', keys),
  row('spec.controlPlane', '--control-plane'),
  // Pools, projects and placement groups.
  row('spec.profile', '--profile'),
  row('spec.weights', '--weight', keys),
  row('spec.weight', '--weight'),
  row('spec.quota', '--quota', keys),
  row('spec.guarantee', '--guarantee', keys),
  row('spec.priorityMax', '--priority-max'),
  row('spec.description', '--description'),
  row('spec.affinity', '--affinity'),
  row('spec.antiAffinity', '--anti-affinity'),
  row('spec.spread', '--spread'),
  row('spec.maxPerHost', '--max-per-host'),
  // Requests that are no resource: plans, and the rotation of the certificate authority.
  row('apply', '--apply'),
  row('deadlineMs', '--deadline', { unit: 'ms' }),
  row('coolDownMs', '--cool-down', { unit: 'ms' }),
  row('overlapMs', '--overlap', { unit: 'ms' }),
  row('to', '--to'),
];

const rowByField = new Map(fieldRows.map((each) => [each.field, each]));
const requestFields = fieldRows.filter(({ field }) => !field.includes('.')).map(({ field }) => field);
const ofRequest = `(?:${requestFields.join('|')})`;
/** A field of a spec anywhere; one of a request where it begins a sentence (`apply` may also be a verb), or in parentheses at the end. */
const path = new RegExp(
  String.raw`\b(?:spec|metadata)(?:\.\w+|\[\d+\])+|(?<=^|: )${ofRequest}(?= must )|(?<=\()${ofRequest}(?=\)$)`,
  'g',
);
const bound = /^( must be [<>]=? )([\d.]+)/;

/** `text` with each field that an option of `command` sets replaced by that option; other fields stay. */
export function inOptions(text: string, command: Command): string {
  const { output } = command.opts<{ readonly output?: unknown }>();
  if (output === 'json' || output === 'yaml') return text;
  let named = '';
  let from = 0;
  for (const match of text.matchAll(path)) {
    const option = optionOf(match[0], command);
    if (option === undefined) continue;
    const end = match.index + match[0].length;
    const [limit = '', comparison = '', number = ''] =
      option.unit === undefined ? [] : (bound.exec(text.slice(end)) ?? []);
    const withUnit = limit === '' ? '' : `${comparison}${amountIn(Number(number), option.unit)}`;
    named += `${text.slice(from, match.index)}${option.text}${withUnit}`;
    from = end + limit.length;
  }
  return (named + text.slice(from)).replace(/ \(<[\w-]+>\)$/, ''); // the message has the argument's value
}

/** As it is written in an option: 30d, 500ms, 32 MiB. */
function amountIn(amount: number, unit = ''): string {
  if (unit !== 'ms') return `${amount} ${unit}`;
  return amount < 1_000 ? `${amount}ms` : age(amount);
}

/** By the longest part of the path in the table. */
function optionOf(field: string, command: Command): { readonly text: string; readonly unit?: string } | undefined {
  const parts = field.match(/\w+|\[\d+\]/g) ?? [];
  for (let length = parts.length; length > 0; length--) {
    const found = rowByField.get(joined(parts.slice(0, length)));
    const name = found?.names.find((each) => has(command, each));
    if (found === undefined || name === undefined) continue;
    const exact = length === parts.length;
    return {
      text: `${name}${exact ? '' : below(found, { name, next: parts[length] ?? '', command })}`,
      ...(exact && found.unit !== undefined ? { unit: found.unit } : {}),
    };
  }
  return undefined;
}

function joined(parts: readonly string[]): string {
  return parts.map((part, i) => (part.startsWith('[') ? '[]' : i === 0 ? part : `.${part}`)).join('');
}

/** With a file, a field may be the file's: then only options that were given are meant. */
function has(command: Command, name: string): boolean {
  const withFile = command.getOptionValueSource('file') === 'cli';
  if (name.startsWith('<')) {
    const index = command.registeredArguments.findIndex((argument) => `<${argument.name()}>` === name);
    return index >= 0 && (!withFile || command.args[index] !== undefined);
  }
  const option = command.options.find(({ long }) => long === name);
  if (option === undefined) return false;
  return !withFile || command.getOptionValueSource(option.attributeName()) === 'cli';
}

function below(
  { below: kind }: Row,
  { name, next, command }: { readonly name: string; readonly next: string; readonly command: Command },
): string {
  if (kind === 'keys') return ` ${next}`;
  if (kind !== 'values') return '';
  const option = command.options.find(({ long }) => long === name);
  const given: unknown = option && command.opts<Readonly<Record<string, unknown>>>()[option.attributeName()];
  const value: unknown = Array.isArray(given) ? given[Number(next.slice(1, -1))] : undefined;
  return typeof value === 'string' ? ` ${value}` : '';
}
