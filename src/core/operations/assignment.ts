// Assignment: what a host should do about one incarnation of one instance. An allocation that nothing wants any more is
// the explicit order to delete its guest; a guest without an allocation is never ordered to be deleted.

import type { AssignedContainer, Assignment } from '../../api/agent-protocol.ts';
import { isContainerImage } from '../../api/container-image.ts';
import { portsOf } from '../../api/instance-ports.ts';
import type { Container } from '../../api/resources/container.ts';
import type { Image } from '../../api/resources/image.ts';
import { type Instance, type InstanceSpec, isToBeOn } from '../../api/resources/instance.ts';
import { holdsOnlyDisk } from '../ledger/ledger.ts';
import { roleIn } from '../migrations/migration-state.ts';
import { conditionOf } from '../state/conditions.ts';
import { hostLost, restored } from '../state/guest-phase.ts';
import type { Allocation } from '../state/records.ts';
import type { Entry } from '../state/snapshot.ts';
import { type SecretByName, secretValuesFor } from './secret-references.ts';
import { type VolumeByName, volumesAssigned } from './volumes/volume-assignment.ts';

export function assignmentOf(
  allocation: Entry<Allocation>,
  instance: Entry<Instance> | undefined,
  imageByName: (name: string) => Image | undefined = () => undefined,
  volumeByName: VolumeByName = () => undefined,
  secretByName: SecretByName = () => undefined,
): Assignment {
  const { consumer, driver, amounts } = allocation.value;
  const current = instance && instance.value.metadata.id === consumer.id ? instance : undefined;
  const spec = current?.value.spec;
  const held = Object.values(amounts)[0] ?? {};
  const image = spec && imageByName(spec.image);
  const volumes = current && spec?.volumes ? volumesAssigned(current.value, allocation.value.host, volumeByName) : [];
  const assigned = current?.value.status.assigned ?? held;
  const secrets = spec && secretValuesFor(consumer.project, spec, secretByName);
  const startAgain = current?.value.status.startAgain;
  const migration = current && migrationFor(current.value, allocation.value, volumeByName);
  const { diskIncarnation, resize, boot } = current?.value.status ?? {};
  const isOwn = current?.value.status.incarnation === consumer.incarnation;
  // A guest that arrives live is what it was: its disk is made before it belongs here.
  const bornAs =
    migration?.role === 'incoming' && migration.live === true
      ? (diskIncarnation ?? current?.value.status.incarnation)
      : isOwn
        ? diskIncarnation
        : undefined;
  return {
    instanceId: consumer.id,
    incarnation: consumer.incarnation,
    revision: Math.max(allocation.revision, current?.revision ?? 0),
    want: wanted(current?.value, allocation.value),
    ...(spec?.powerState === 'suspended' && spec.suspendTo === 'disk' ? { suspendTo: spec.suspendTo } : {}),
    driver,
    name: consumer.name,
    project: consumer.project,
    hostname: spec?.hostname ?? consumer.name,
    generation: current?.value.metadata.generation ?? 0,
    cpus: Math.ceil(assigned['VCPU'] ?? 1),
    memoryMiB: assigned['MEMORY_MB'] ?? 16,
    diskGiB: assigned['DISK_GB'] ?? 0,
    imageName: image?.metadata.name ?? spec?.image ?? '',
    ...(image ? { image: image.spec } : {}),
    ...boot,
    ports: spec ? portsOf(spec) : [],
    sshKeys: spec?.sshKeys ?? [],
    userData: spec?.userData ?? '',
    ...(spec?.run ? { run: spec.run } : {}),
    ...(spec && image && isContainerImage(image.spec) ? { containers: containersOf(spec, image, imageByName) } : {}),
    ...(volumes.length > 0 ? { volumes } : {}),
    ...(spec?.checks ? { checks: spec.checks } : {}),
    ...(spec?.imageCredentials ? { imageCredentials: spec.imageCredentials } : {}),
    ...(secrets === undefined ? {} : { secrets }),
    stopGraceMs: spec?.stopGraceMs ?? 0,
    ...(spec?.selfStop === true ? { selfStop: true } : {}),
    ...(startAgain === undefined ? {} : { startAgain }),
    ...(migration === undefined ? {} : { migration }),
    ...(resize === undefined ? {} : { resized: resize.order }),
    ...(bornAs === undefined ? {} : { diskIncarnation: bornAs }),
  };
}

/** What this host has to do with the move of the instance; undefined: nothing. */
function migrationFor(
  instance: Instance,
  allocation: Allocation,
  volumeByName: VolumeByName,
): Assignment['migration'] | undefined {
  const found = roleIn(instance, allocation);
  if (found === undefined) return undefined;
  const { role, migration } = found;
  const { bytesPerSecondMax, direct, seen } = migration;
  const at = seen?.id === migration.id ? seen.at : undefined;
  return {
    id: migration.id,
    role,
    copy: migration.step === 'Copying',
    ...(migration.kind === 'live' ? { live: true as const } : {}),
    volumes: volumesAssigned(instance, migration.from, volumeByName).map(({ volumeId }) => volumeId),
    ...(bytesPerSecondMax === undefined ? {} : { bytesPerSecondMax }),
    ...(direct === undefined
      ? {}
      : role === 'incoming'
        ? { direct: { peer: direct.from } }
        : { direct: { peer: direct.to, ...(at === undefined ? {} : { at }) } }),
  };
}

function containersOf(
  spec: InstanceSpec,
  own: Image,
  imageByName: (name: string) => Image | undefined,
): AssignedContainer[] {
  return (spec.containers ?? [plainContainer]).map(
    ({ name, image: word, ports: _ports, diskGiB: _disk, ...container }) => {
      const image = word === undefined ? own : imageByName(word);
      return {
        name,
        imageName: image?.metadata.name ?? word ?? spec.image,
        ...(image ? { image: image.spec } : {}),
        ...container,
      };
    },
  );
}

/** For an instance without containers in its spec. */
const plainContainer: Container = { name: 'main', env: {}, ports: [] };

function wanted(instance: Instance | undefined, allocation: Allocation): Assignment['want'] {
  if (!instance || instance.metadata.deletionRequestedAtMs !== undefined) return 'absent';
  const { status, spec } = instance;
  const role = roleIn(instance, allocation)?.role;
  if (role === 'incoming') return 'incoming';
  if (status.host !== allocation.host || status.incarnation !== allocation.consumer.incarnation) return 'absent';
  const seen = conditionOf(status.conditions, 'Running')?.reason;
  if (seen === restored) return 'kept';
  // One that moves live runs until its memory has arrived; that it is to be stopped ends the move first.
  if (role === 'outgoing') return status.migration?.kind === 'live' ? 'running' : 'stopped';
  // Without room it may not run: controllers/power-on.ts claims it again.
  if (!isToBeOn(spec) || status.phase === 'Exited' || holdsOnlyDisk(allocation)) return 'stopped';
  // A failed guest has ended; a guest on a lost host may still run.
  if (status.phase === 'Failed' && seen !== hostLost) return 'stopped';
  return spec.powerState === 'suspended' ? 'suspended' : 'running';
}
