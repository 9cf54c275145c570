// Attaching: the changes of volumes when an instance is created with volumes, or gets others. A volume belongs to one
// instance at a time: each attachment rewrites it, so that of two concurrent ones only one commits.

import { isContainerImage } from '../../../api/container-image.ts';
import { driverFacts } from '../../../api/driver-facts.ts';
import { ApiError } from '../../../api/errors.ts';
import { nearest } from '../../../api/nearest.ts';
import type { Image } from '../../../api/resources/image.ts';
import type { Instance, InstanceSpec } from '../../../api/resources/instance.ts';
import type { Volume } from '../../../api/resources/volume.ts';
import { withConditions } from '../../state/conditions.ts';
import type { Context } from '../../state/context.ts';
import { keys } from '../../state/keys.ts';
import type { Change } from '../../state/plan.ts';
import type { Entry, Snapshot } from '../../state/snapshot.ts';
import { volumeStatusChange } from '../../state/volume-change.ts';
import { asksOf, holderOf } from '../../state/volumes.ts';
import { roomForVolumes } from './volume-room.ts';

/** For an instance that does not exist yet. Throws `InvalidRequest` naming the field, or `Conflict`. */
export function assertVolumes(
  snapshot: Snapshot,
  asked: {
    readonly project: string;
    readonly id?: string;
    readonly spec: Pick<InstanceSpec, 'volumes' | 'containers'> & { readonly image?: string | undefined };
  },
): Entry<Volume>[] {
  const { volumes = [], image: word } = asked.spec;
  const image = word === undefined ? undefined : snapshot.imageByName(word)?.value;
  const found = volumes.map(({ name }, i) => {
    const at = `spec.volumes[${i}].name`;
    if (volumes.findIndex((each) => each.name === name) < i) throw invalid(at, `volume "${name}" is named twice`);
    const volume = snapshot.get('volume', keys.volume(asked.project, name));
    if (!volume) throw invalid(at, missing(snapshot, asked.project, name));
    if (image) assertFormat(volume.value, image, { at, containers: asked.spec.containers });
    assertFree(snapshot, volume.value, { at, id: asked.id });
    return volume;
  });
  const { hosts } = asksOf(found);
  if (hosts.length > 1)
    throw invalid('spec.volumes', `its volumes are on several hosts (${hosts.join(', ')}), and an instance is on one`);
  return found;
}

/** Disks are for virtual machines, file systems for containers: a guest with the disk could write a file system that harms the host which mounts it. */
function assertFormat(
  { metadata: { name }, spec: { format = 'disk' } }: Volume,
  image: Image,
  { at, containers = [] }: { readonly at: string; readonly containers: InstanceSpec['containers'] },
): void {
  const runs = `image "${image.metadata.name}" is of ${isContainerImage(image.spec) ? 'containers' : 'virtual machines'}`;
  if (!isContainerImage(image.spec)) {
    if (format === 'disk') return;
    throw invalid(at, `volume "${name}" is a file system for containers, and ${runs}`);
  }
  if (format === 'disk')
    throw invalid(
      at,
      `volume "${name}" is a disk for virtual machines, and ${runs}: create one with "berth volume create NAME --format filesystem"`,
    );
  if (!containers.some(({ mounts }) => mounts?.some(({ volume }) => volume === name)))
    throw invalid(at, `no container mounts volume "${name}": containers[].mounts of one must name it, with a path`);
}

function missing(snapshot: Snapshot, project: string, name: string): string {
  const known: string[] = [];
  for (const { value } of snapshot.list('volume'))
    if (value.metadata.project === project) known.push(value.metadata.name);
  const meant = nearest(name, known);
  return `there is no volume "${name}" in project ${project}${meant ? `; did you mean "${meant}"?` : '; "berth volume create" creates one'}`;
}

function assertFree(
  snapshot: Snapshot,
  volume: Volume,
  { at, id }: { readonly at: string; readonly id: string | undefined },
): void {
  const { metadata, status } = volume;
  if (metadata.deletionRequestedAtMs !== undefined)
    throw new ApiError('Conflict', `volume "${metadata.name}" is being deleted`, { field: at });
  if (status.phase === 'Failed')
    throw new ApiError(
      'Conflict',
      `volume "${metadata.name}" has failed: ${status.conditions.find(({ type }) => type === 'Ready')?.message ?? 'see "berth get volume"'}`,
      { field: at },
    );
  const holder = holderOf(snapshot, volume);
  if (holder && holder.value.metadata.id !== id)
    throw new ApiError(
      'Conflict',
      `volume "${metadata.name}" is attached to instance "${holder.value.metadata.name}"; "berth volume detach ${metadata.name}" detaches it`,
      { field: at },
    );
}

/** The changes of volumes for a new instance. */
export function attachToNew(snapshot: Snapshot, instance: Instance): Change[] {
  if (instance.spec.volumes === undefined) return [];
  const { metadata, spec } = instance;
  return assertVolumes(snapshot, { project: metadata.project, id: metadata.id, spec }).map((volume) =>
    volumeStatusChange(volume, { ...volume.value.status, attachedTo: { instance: metadata.name, id: metadata.id } }),
  );
}

/**
 * The changes of volumes when an instance's volumes change. Released volumes are free at once: their host gives them to
 * no other guest before this one has detached them. New volumes without a host take their room on the instance's host.
 */
export function attachToExisting(snapshot: Snapshot, before: Instance, after: Instance, ctx: Context): Change[] {
  const { metadata, spec, status } = after;
  if (spec.containers?.some(({ mounts }) => mounts?.some(({ volume }) => volume !== undefined)) === true)
    throw new ApiError(
      'Conflict',
      `the containers of instance "${metadata.name}" keep the volumes that they were created with; remove the instance to free them`,
      { field: 'spec.volumes' },
    );
  const volumes = assertVolumes(snapshot, { project: metadata.project, id: metadata.id, spec });
  const added = volumes.filter(({ value }) => !before.spec.volumes?.some(({ name }) => name === value.metadata.name));
  const host = boundHost(snapshot, after);
  if (host === undefined || added.length === 0)
    return [
      ...added.map((volume) => volumeStatusChange(volume, { ...volume.value.status, attachedTo: attachmentOf(after) })),
      ...releasedBy(snapshot, before, after),
    ];
  if (!host.able)
    throw new ApiError(
      'Conflict',
      `instance "${metadata.name}" runs under the driver ${host.driver}, which has no volumes`,
      {
        field: 'spec.volumes',
      },
    );
  const elsewhere = added.find(({ value }) => value.status.host !== undefined && value.status.host !== host.name);
  if (elsewhere)
    throw new ApiError(
      'Conflict',
      `volume "${elsewhere.value.metadata.name}" is on host ${elsewhere.value.status.host}, and instance "${metadata.name}" on host ${status.host}; a volume stays where it is`,
      { field: 'spec.volumes' },
    );
  const unplaced = added.filter(({ value }) => value.status.host === undefined);
  return [
    ...added.map((volume) =>
      volumeStatusChange(volume, {
        ...volume.value.status,
        attachedTo: attachmentOf(after),
        ...(volume.value.status.host === undefined ? placedStatus(volume.value, host.name, ctx) : {}),
      }),
    ),
    ...roomForVolumes(
      snapshot,
      unplaced.map(({ value }) => value),
      host.name,
    ),
    ...releasedBy(snapshot, before, after),
  ];
}

function attachmentOf({ metadata }: Instance): NonNullable<Volume['status']['attachedTo']> {
  return { instance: metadata.name, id: metadata.id };
}

/** The status of a volume that has been assigned to its host. */
export function placedStatus(
  volume: Volume,
  host: string,
  ctx: Context,
): Pick<Volume['status'], 'phase' | 'host' | 'conditions'> {
  const message = `host ${host} has not started it yet`;
  return {
    phase: 'Creating',
    host,
    conditions: withConditions(
      volume.status.conditions,
      [{ type: 'Ready', status: 'False', reason: 'NotStarted', message }],
      ctx.nowMs,
    ),
  };
}

function releasedBy(snapshot: Snapshot, before: Instance, after: Instance): Change[] {
  return (before.spec.volumes ?? []).flatMap(({ name }) => {
    if (after.spec.volumes?.some((each) => each.name === name)) return [];
    const volume = snapshot.get('volume', keys.volume(after.metadata.project, name));
    if (volume?.value.status.attachedTo?.id !== after.metadata.id) return [];
    const { attachedTo: _, ...status } = volume.value.status;
    return [volumeStatusChange(volume, status)];
  });
}

const able: ReadonlySet<string> = new Set(driverFacts.flatMap(({ name, volumes }) => (volumes ? [name] : [])));

/** The host where the instance has room now; a waiting instance has no host, or has left it. */
function boundHost(
  snapshot: Snapshot,
  { metadata, status }: Instance,
): { readonly name: string; readonly driver: string; readonly able: boolean } | undefined {
  const allocation = snapshot.get('allocation', keys.allocation(metadata.id, status.incarnation))?.value;
  if (status.host === undefined || allocation?.host !== status.host) return undefined;
  return { name: status.host, driver: allocation.driver, able: able.has(allocation.driver) };
}

const invalid = (field: string, message: string): ApiError => new ApiError('InvalidRequest', message, { field });
