// How each kind of resource is listed: its names on the command line, and its columns.

import { pluralOf } from '../api/resources/plural-of.ts';
import type { Binding } from '../api/resources/binding.ts';
import type { Event } from '../api/resources/event.ts';
import type { Group } from '../api/resources/group.ts';
import type { Host } from '../api/resources/host.ts';
import { hostStateName } from '../api/resources/host-state.ts';
import { gpuClass, gpuWhole } from '../api/resources/host-rules.ts';
import type { Image } from '../api/resources/image.ts';
import type { Job } from '../api/resources/job.ts';
import type { JobTemplate } from '../api/resources/job-template.ts';
import type { Kind, ResourceByKind } from '../api/resources/index.ts';
import type { Pool } from '../api/resources/pool.ts';
import type { Project } from '../api/resources/project.ts';
import type { Role } from '../api/resources/role.ts';
import type { Inventory } from '../api/resources/inventory.ts';
import type { Webhook } from '../api/resources/webhook.ts';
import type { Secret } from '../api/resources/secret.ts';
import type { Size } from '../api/resources/size.ts';
import type { Spare } from '../api/resources/spare.ts';
import { hitRateOf, type WarmPool } from '../api/resources/warm-pool.ts';
import type { Workload } from '../api/resources/workload.ts';
import type { Task } from '../api/resources/task.ts';
import type { Token } from '../api/resources/token.ts';
import type { Volume } from '../api/resources/volume.ts';
import type { HostUsage, ProjectUsage } from '../api/usage.ts';
import { rulesOfGroup } from './fleet/group-rules.ts';
import { conditionOf, instanceColumns } from './instances/instance-view.ts';
import { reasonOfJob } from './jobs/job-view.ts';
import { type Column, longestReason } from './print/output.ts';
import { type Inventories, originText } from './inventory/outside-host.ts';
import { age, bytes, memory } from './options/units.ts';

/** Additional data for a table. */
export interface ViewFacts {
  readonly nowMs: number;
  /** Use and capacity of each host; absent when not requested. */
  readonly usageByHost?: ReadonlyMap<string, HostUsage>;
  /** Whether some hosts use host tokens, although they could have certificates. */
  readonly hostTokens?: boolean;
  /** Where hosts without agents come from; absent when there are none. */
  readonly inventories?: Inventories | undefined;
  /** Size of each image on the hosts that have it; absent when not requested. */
  readonly sizeByImage?: ReadonlyMap<string, number>;
  /** Charged amounts of each project's quota; absent when not requested. */
  readonly chargedByProject?: ReadonlyMap<string, ProjectUsage['charged']>;
}

export type KindView<T> = (facts: ViewFacts) => Column<T>[];

export const kindViews: { readonly [K in Kind]: KindView<ResourceByKind[K]> } = {
  instance: ({ nowMs }) => instanceColumns(nowMs),
  host: hostColumns,
  project: projectColumns,
  image: imageColumns,
  size: sizeColumns,
  pool: poolColumns,
  group: groupColumns,
  task: taskColumns,
  workload: workloadColumns,
  warmPool: warmPoolColumns,
  spare: spareColumns,
  volume: volumeColumns,
  job: jobColumns,
  jobTemplate: jobTemplateColumns,
  token: tokenColumns,
  role: roleColumns,
  binding: bindingColumns,
  secret: secretColumns,
  webhook: webhookColumns,
  inventory: inventoryColumns,
  event: eventColumns,
};

export const kinds: readonly Kind[] = [
  'instance',
  'host',
  'project',
  'image',
  'size',
  'pool',
  'group',
  'task',
  'workload',
  'warmPool',
  'spare',
  'volume',
  'job',
  'jobTemplate',
  'token',
  'role',
  'binding',
  'secret',
  'webhook',
  'inventory',
  'event',
];
const shortNames: Readonly<Record<string, Kind>> = {
  vm: 'instance',
  vms: 'instance',
  inst: 'instance',
  img: 'image',
  warmpool: 'warmPool',
  'warm-pool': 'warmPool',
  jobtemplate: 'jobTemplate',
  'job-template': 'jobTemplate',
};

export function kindOf(word: string): Kind | undefined {
  const lower = word.toLowerCase();
  return (
    kinds.find((kind) => lower === kind.toLowerCase() || lower === pluralOf(kind)) ??
    (Object.hasOwn(shortNames, lower) ? shortNames[lower] : undefined)
  );
}

function hostColumns({ nowMs, usageByHost, inventories, hostTokens }: ViewFacts): Column<Host>[] {
  /** `3/8`: held, and capacity; without usage the measured capacity. */
  const used = (resourceClass: string, show: (value: number) => string) => (host: Host) => {
    const use = usageByHost?.get(host.metadata.name)?.classes[resourceClass];
    return use ? `${show(use.used)}/${show(use.capacity)}` : amount(host.status.capacity?.[resourceClass], show);
  };
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    {
      header: 'STATE',
      importance: 'major',
      value: hostStateName,
      paint: (cell, host, colours) => (hostReady(host) ? colours.green(cell) : colours.red(cell)),
    },
    { header: 'SINCE', value: (host) => hostStateAge(host, nowMs), right: true },
    { header: 'POOL', value: ({ spec }) => spec.pool ?? '' },
    { header: 'CPUS', value: used('VCPU', String), right: true },
    { header: 'MEMORY', value: used('MEMORY_MB', memory), right: true },
    { header: 'DISK', value: used('DISK_GB', (gib) => `${gib} GiB`), right: true },
    ...(hasGpus(usageByHost)
      ? [{ header: 'GPUS', value: used(gpuClass, (milli) => String(milli / gpuWhole)), right: true }]
      : []),
    { header: 'DRIVERS', importance: 'minor', value: ({ status }) => driversOf(status.drivers) },
    ...(usageByHost
      ? [
          {
            header: 'INSTANCES',
            value: ({ metadata }: Host) => String(usageByHost.get(metadata.name)?.consumers ?? 0),
            right: true,
          },
        ]
      : []),
    ...(inventories
      ? [{ header: 'INVENTORY', value: ({ status }: Host) => originText(status, inventories, nowMs) }]
      : []),
    ...(hostTokens ? [{ header: 'CREDENTIAL', value: ({ status }: Host) => status.credential ?? '' }] : []),
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
  ];
}

function hasGpus(usageByHost: ViewFacts['usageByHost']): boolean {
  for (const { classes } of usageByHost?.values() ?? []) if (classes[gpuClass] !== undefined) return true;
  return false;
}

export function hostReady({ status }: Host): boolean {
  return conditionOf(status.conditions, 'Ready')?.status === 'True';
}

/** `3m`: how long the host has been in its state. */
export function hostStateAge(host: Host, nowMs: number): string {
  const { state, conditions } = host.status;
  const sinceMs = state?.name === hostStateName(host) ? state.sinceMs : conditionOf(conditions, 'Ready')?.sinceMs;
  return age(nowMs - (sinceMs ?? host.metadata.createdAtMs));
}

/** `qemu/tcg,fake`; drivers that do not work are shown by `berth host show` only. */
export function driversOf(drivers: Host['status']['drivers']): string {
  return drivers
    .filter(({ available }) => available)
    .map(({ name, accelerator }) =>
      accelerator === undefined || accelerator === 'none' ? name : `${name}/${accelerator}`,
    )
    .join(',');
}

function amount(value: number | undefined, show: (value: number) => string): string {
  return value === undefined ? '' : show(value);
}

function imageColumns({ nowMs, sizeByImage }: ViewFacts): Column<Image>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'ALIASES', value: ({ spec }) => spec.aliases.join(',') },
    { header: 'ARCH', value: ({ spec }) => spec.architecture },
    {
      header: 'FORMAT',
      value: ({ spec }) => (spec.decompress === 'none' ? spec.format : `${spec.format}.${spec.decompress}`),
    },
    {
      header: 'SIZE', // on hosts; before any host has it, at its source
      value: ({ metadata, spec }) => amount(sizeByImage?.get(metadata.name) ?? spec.sizeBytes, bytes),
      right: true,
    },
    { header: 'DRIVER', importance: 'minor', usual: 'any', value: ({ spec }) => spec.backend ?? 'any' },
    { header: 'CHECKED', importance: 'minor', value: ({ spec }) => (spec.checksum === undefined ? 'no' : 'yes') },
    { header: 'PRELOAD', importance: 'minor', usual: 'no', value: ({ spec }) => (spec.preload ? 'yes' : 'no') },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    { header: 'SOURCE', importance: 'major', value: ({ spec }) => spec.source },
  ];
}

function sizeColumns({ nowMs }: ViewFacts): Column<Size>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'CPUS', value: ({ spec }) => String(spec.cpus), right: true },
    { header: 'MEMORY', value: ({ spec }) => memory(spec.memoryMiB), right: true },
    { header: 'DISK', value: ({ spec }) => (spec.diskGiB ? `${spec.diskGiB} GiB` : 'as the image'), right: true },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
  ];
}

function poolColumns({ nowMs }: ViewFacts): Column<Pool>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'PROFILE', value: ({ spec }) => spec.profile ?? '' },
    { header: 'CPU RATIO', value: ({ spec }) => String(spec.allocationRatios?.['VCPU'] ?? ''), right: true },
    {
      header: 'REBALANCE',
      importance: 'minor',
      value: ({ spec: { rebalance } }) => (rebalance?.paused ? 'paused' : (rebalance?.mode ?? '')),
    },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    { header: 'DESCRIPTION', importance: 'minor', value: ({ spec }) => spec.description },
  ];
}

function jobColumns({ nowMs }: ViewFacts): Column<Job>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'PHASE', importance: 'major', value: ({ status }) => status.phase },
    { header: 'LABEL', value: ({ spec }) => imageWord(spec) },
    { header: 'TRY', value: ({ status }) => String(status.attempt), right: true },
    { header: 'EXIT', value: ({ status }) => String(status.exitCode ?? ''), right: true },
    {
      header: 'LEFT',
      value: ({ status }) => (status.heldUntilMs === undefined ? '' : age(status.heldUntilMs - nowMs)),
      right: true,
    },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    { header: 'REASON', importance: 'major', longest: longestReason, value: (job) => reasonOfJob(job, nowMs) },
  ];
}

function jobTemplateColumns({ nowMs }: ViewFacts): Column<JobTemplate>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'SCHEDULE', value: ({ spec }) => spec.schedule?.cron ?? '' },
    { header: 'ZONE', importance: 'minor', usual: 'UTC', value: ({ spec }) => spec.schedule?.timeZone ?? '' },
    {
      header: 'NEXT',
      value: ({ spec, status }) =>
        spec.schedule && spec.paused
          ? 'paused'
          : status.nextMs === undefined
            ? ''
            : `in ${age(Math.max(0, status.nextMs - nowMs))}`,
    },
    { header: 'LAST', value: ({ status }) => status.last?.job ?? '' },
    { header: 'JOBS', value: ({ status }) => String(status.jobs), right: true },
    { header: 'LABEL', importance: 'minor', value: ({ spec }) => imageWord(spec.template.spec) },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    {
      header: 'REASON',
      importance: 'major',
      longest: longestReason,
      value: ({ status }) => {
        const scheduled = conditionOf(status.conditions, 'Scheduled');
        return scheduled?.status === 'False' ? `${scheduled.reason}: ${scheduled.message}` : '';
      },
    },
  ];
}

function imageWord({ image, label }: Job['spec']): string {
  return image ?? label ?? 'default';
}

function workloadColumns({ nowMs }: ViewFacts): Column<Workload>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'WANTED', value: ({ status }) => String(status.wanted), right: true },
    { header: 'READY', value: ({ status }) => String(status.ready), right: true },
    { header: 'AVAILABLE', value: ({ status }) => String(status.available), right: true },
    { header: 'UPDATED', value: ({ status }) => String(status.updated), right: true },
    { header: 'REVISION', value: ({ status }) => String(status.revision), right: true },
    { header: 'IMAGE', importance: 'minor', value: ({ spec }) => spec.template.spec.image },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    {
      header: 'STATE',
      importance: 'major',
      longest: longestReason,
      value: ({ metadata, spec, status }) =>
        metadata.deletionRequestedAtMs !== undefined
          ? 'being removed'
          : `${spec.paused ? 'paused; ' : ''}${conditionOf(status.conditions, 'Available')?.message ?? ''}`,
    },
  ];
}

function warmPoolColumns({ nowMs }: ViewFacts): Column<WarmPool>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'WANTED', value: ({ status }) => String(status.wanted), right: true },
    { header: 'READY', value: ({ status }) => String(status.ready), right: true },
    { header: 'CLAIMS', value: ({ status }) => String(status.hits + status.misses), right: true },
    { header: 'HITS', value: ({ status }) => hitRateText(status), right: true },
    { header: 'KEPT', importance: 'minor', usual: 'running', value: ({ spec }) => spec.state },
    { header: 'IMAGE', importance: 'minor', value: ({ spec }) => spec.template.spec.image },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    {
      header: 'STATE',
      importance: 'major',
      longest: longestReason,
      value: ({ metadata, status }) =>
        metadata.deletionRequestedAtMs === undefined
          ? (conditionOf(status.conditions, 'Ready')?.message ?? '')
          : 'being removed',
    },
  ];
}

/** `90 %`; empty before the first claim. */
function hitRateText(status: WarmPool['status']): string {
  const rate = hitRateOf(status);
  return rate === undefined ? '' : `${Math.round(100 * rate)} %`;
}

function spareColumns({ nowMs }: ViewFacts): Column<Spare>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'PHASE', importance: 'major', value: ({ status }) => status.phase },
    { header: 'HOST', value: ({ status }) => status.host ?? '' },
    { header: 'ADDRESS', value: ({ status }) => status.address ?? '' },
    { header: 'PROVISIONER', importance: 'minor', value: ({ spec }) => spec.provisioner },
    {
      header: 'LEFT',
      value: ({ status }) =>
        status.phase === 'Ready' && status.heldUntilMs !== undefined ? age(status.heldUntilMs - nowMs) : '',
      right: true,
    },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    {
      header: 'REASON',
      importance: 'major',
      longest: longestReason,
      value: ({ status }) => (status.phase === 'Ready' ? '' : (conditionOf(status.conditions, 'Ready')?.message ?? '')),
    },
  ];
}

function taskColumns({ nowMs }: ViewFacts): Column<Task>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'PHASE', importance: 'major', value: ({ status }) => status.phase },
    { header: 'HOST', value: ({ status }) => status.host ?? '' },
    { header: 'CPUS', value: ({ status, spec }) => String(status.assigned?.['VCPU'] ?? spec.cpus ?? ''), right: true },
    {
      header: 'MEMORY',
      value: ({ status, spec }) => amount(status.assigned?.['MEMORY_MB'] ?? spec.memoryMiB, memory),
      right: true,
    },
    {
      header: 'LEFT',
      value: ({ status }) =>
        status.phase === 'Placed' && status.heldUntilMs !== undefined ? age(status.heldUntilMs - nowMs) : '',
      right: true,
    },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    {
      header: 'REASON',
      importance: 'major',
      longest: longestReason,
      value: ({ status }) =>
        status.phase === 'Placed' ? '' : (conditionOf(status.conditions, 'Scheduled')?.message ?? ''),
    },
  ];
}

function groupColumns({ nowMs }: ViewFacts): Column<Group>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'RULES', value: ({ spec }) => rulesOfGroup(spec).join(', ') },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    { header: 'DESCRIPTION', importance: 'minor', value: ({ spec }) => spec.description },
  ];
}

function projectColumns({ nowMs, chargedByProject }: ViewFacts): Column<Project>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'WEIGHT', value: ({ spec }) => String(spec.weight), right: true },
    { header: 'QUOTA', value: ({ metadata, spec }) => quotaOf(spec.quota, chargedByProject?.get(metadata.name)) },
    { header: 'GUARANTEE', value: ({ spec }) => amountsOf(spec.guarantee) },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    { header: 'DESCRIPTION', importance: 'minor', value: ({ spec }) => spec.description },
  ];
}

/** `VCPU=2/8,INSTANCES=1/4`: charged, and limit. */
function quotaOf(quota: Project['spec']['quota'], charged: ProjectUsage['charged'] | undefined): string {
  if (charged === undefined) return amountsOf(quota);
  return Object.entries(quota ?? {})
    .map(([resourceClass, most]) => `${resourceClass}=${charged[resourceClass] ?? 0}/${most}`)
    .join(',');
}

/** `VCPU=8,INSTANCES=4`. */
function amountsOf(amounts: Project['spec']['quota']): string {
  return Object.entries(amounts ?? {})
    .map(([resourceClass, amount]) => `${resourceClass}=${amount}`)
    .join(',');
}

function eventColumns({ nowMs }: ViewFacts): Column<Event>[] {
  return [
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    {
      header: 'TYPE',
      value: ({ spec }) => spec.type,
      paint: (cell, { spec }, colours) => (spec.type === 'Warning' ? colours.yellow(cell) : cell),
    },
    { header: 'REASON', value: ({ spec }) => spec.reason },
    { header: 'SUBJECT', value: ({ spec }) => `${spec.subject.kind}/${spec.subject.name}` },
    { header: 'HOST', value: ({ spec }) => spec.host ?? '' },
    { header: 'MESSAGE', importance: 'major', value: ({ spec }) => spec.message },
  ];
}

function volumeColumns({ nowMs }: ViewFacts): Column<Volume>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    {
      header: 'PHASE',
      importance: 'major',
      value: ({ status }) => status.phase,
      paint: (cell, { status }, colours) => (status.phase === 'Failed' ? colours.red(cell) : cell),
    },
    { header: 'SIZE', value: ({ spec }) => `${spec.sizeGiB} GiB`, right: true },
    { header: 'HOST', value: ({ status }) => status.host ?? '' },
    { header: 'INSTANCE', value: ({ status }) => status.attachedTo?.instance ?? '' },
    { header: 'SNAPSHOTS', value: ({ spec }) => spec.snapshots.join(',') },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
  ];
}

function tokenColumns({ nowMs }: ViewFacts): Column<Token>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'ID', importance: 'minor', value: ({ status }) => status.tokenId },
    { header: 'ROLE', value: ({ spec }) => spec.role ?? (spec.share ? `share of ${spec.share.instance}` : '') },
    { header: 'PROJECT', value: ({ spec }) => spec.project ?? '' },
    {
      header: 'EXPIRES',
      value: ({ spec: { expiresAtMs } }) =>
        expiresAtMs === undefined ? 'never' : expiresAtMs <= nowMs ? 'expired' : `in ${age(expiresAtMs - nowMs)}`,
    },
    {
      header: 'LAST USE',
      value: ({ status: { lastUsedAtMs } }) => (lastUsedAtMs === undefined ? 'never' : age(nowMs - lastUsedAtMs)),
    },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
  ];
}

function webhookColumns({ nowMs }: ViewFacts): Column<Webhook>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'URL', importance: 'major', value: ({ spec }) => spec.url },
    { header: 'EVENTS', value: ({ spec }) => spec.events.join(',') },
    {
      header: 'STATE',
      value: ({ spec, status }) => (status.disabled ? 'disabled' : spec.paused ? 'paused' : 'active'),
      paint: (cell, { status }, colours) => (status.disabled ? colours.red(cell) : cell),
    },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
  ];
}

function inventoryColumns({ nowMs }: ViewFacts): Column<Inventory>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'SOURCE', value: ({ spec: { source } }) => (source.kind === 'http' ? source.url : source.kind) },
    { header: 'HOSTS', value: ({ status }) => String(status.hosts), right: true },
    {
      header: 'STATE',
      importance: 'major',
      value: ({ status }) => status.state,
      paint: (cell, { status }, colours) => (status.state === 'Fresh' ? cell : colours.red(cell)),
    },
    {
      header: 'LAST GOOD',
      value: ({ status: { lastGoodAtMs } }) => (lastGoodAtMs === undefined ? '' : `${age(nowMs - lastGoodAtMs)} ago`),
    },
    { header: 'MESSAGE', importance: 'minor', value: ({ status }) => status.message },
  ];
}

function secretColumns({ nowMs }: ViewFacts): Column<Secret>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'VALUES', importance: 'major', value: ({ status }) => Object.keys(status.keys).join(',') },
    { header: 'VERSION', value: ({ status }) => String(status.version), right: true },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    { header: 'DESCRIPTION', importance: 'minor', value: ({ spec }) => spec.description },
  ];
}

function roleColumns({ nowMs }: ViewFacts): Column<Role>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'RESOURCES', value: ({ spec }) => Object.keys(spec.rules).join(',') },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
    { header: 'DESCRIPTION', importance: 'minor', value: ({ spec }) => spec.description },
  ];
}

function bindingColumns({ nowMs }: ViewFacts): Column<Binding>[] {
  return [
    { header: 'NAME', value: ({ metadata }) => metadata.name },
    { header: 'ROLE', value: ({ spec }) => spec.role },
    { header: 'PROJECT', value: ({ spec }) => spec.project ?? '(fleet)' },
    {
      header: 'SUBJECTS',
      importance: 'major',
      value: ({ spec }) => spec.subjects.map(({ kind, name }) => `${kind}:${name}`).join(','),
    },
    { header: 'AGE', value: ({ metadata }) => age(nowMs - metadata.createdAtMs), right: true },
  ];
}
