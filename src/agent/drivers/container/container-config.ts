// The names, labels and configuration of a guest's containers, as sent to the engine. Pure. A container gets only the access to
// the host that programs need; input of its owner is data, never an option of the engine.

import { type ContainerReference, engineReference, readContainerReference } from '../../../api/container-reference.ts';
import type { GuestPort } from '../../../api/agent-protocol.ts';
import type { ContainerGuard } from '../../network/container-guard.ts';
import type { GuestContainer, GuestSpec } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import { mountConfig, mountsLabel, mountsText } from './mounts/mounts.ts';
import { hostMountOf } from './mounts/volume-mounts.ts';

export const labels = {
  instance: 'berth.instance',
  incarnation: 'berth.incarnation',
  container: 'berth.container',
  /** The guest's folder: distinguishes this agent's containers from those of another agent on the same engine. */
  directory: 'berth.directory',
  /** Milliseconds that this container has to end, where it has less than its guest. */
  stopGrace: 'berth.stop-grace',
} as const;

export const containerName = (instanceId: string, name: string): string => `berth-${instanceId}-${name}`;

/** Adds the single container of a guest whose owner named none. */
export function withContainers(spec: GuestSpec): GuestSpec & { readonly containers: readonly GuestContainer[] } {
  const { imageName, image } = spec;
  return { ...spec, containers: spec.containers ?? [{ name: 'main', imageName, image, env: {} }] };
}

/** Throws `ImageUnavailable` or `ImageInvalid`. */
export function referenceOf({ name, imageName, image }: GuestContainer): ContainerReference {
  if (image === undefined)
    throw new DriverError('ImageUnavailable', `image "${imageName}" of container "${name}" does not exist any more`);
  const read = image.format === 'container' ? readContainerReference(image.source) : undefined;
  if (read?.ok) return read.reference;
  const fault = read === undefined ? `its format is ${image.format}, of virtual machines` : `its source: ${read.fault}`;
  throw new DriverError('ImageInvalid', `cannot run image "${imageName}" in container "${name}": ${fault}`);
}

export const referenceText = (container: GuestContainer): string => engineReference(referenceOf(container));

/**
 * Capabilities that Docker gives by default and podman does not: device files, raw sockets and the kernel's audit log
 * (capabilities(7)) are for programs that administer a host.
 */
const dropped = ['AUDIT_WRITE', 'MKNOD', 'NET_RAW'];
const processesMax = 4096; // limits a fork bomb; servers have fewer than a thousand threads per core
const logBytesMax = 8 * 1024 * 1024; // kept by the engine until the agent has read it

/** A network of the engine that is closed to guests. */
export interface ContainerNetwork {
  readonly name: string;
  readonly guard: Pick<ContainerGuard, 'close'>;
}

export interface ContainerPlace {
  readonly directory: string;
  /** The engine's own id: a name may be moved to another image. */
  readonly imageId: string;
  /** Where published ports listen. */
  readonly bindAddress: string;
  /** The reserved ports; published by the first container. */
  readonly ports: readonly GuestPort[];
  /** The name of a network of the engine, for the first container. Absent: the engine's. */
  readonly network?: string | undefined;
  /** The engine gives interfaces link-local addresses of IPv6, by which guests would reach each other. */
  readonly hasLinkLocal?: boolean;
  /** The first container's id, for the others. */
  readonly networkOf?: string;
}

/** For `ContainerCreate` of the Docker API. */
export function containerConfig(spec: GuestSpec, container: GuestContainer, place: ContainerPlace): unknown {
  const { command, args, env, name, stopGraceMs } = container;
  const mounts = container.mounts?.map((mount) => hostMountOf(mount, spec.volumes ?? []));
  const memoryBytes = (container.memoryMiB ?? spec.memoryMiB) * 1024 * 1024;
  return {
    Image: place.imageId,
    ...(command === undefined ? {} : { Entrypoint: command }),
    ...(args === undefined ? {} : { Cmd: args }),
    Env: Object.entries(env).map(([variable, value]) => `${variable}=${value}`),
    Labels: {
      [labels.instance]: spec.instanceId,
      [labels.incarnation]: String(spec.incarnation),
      [labels.container]: name,
      [labels.directory]: place.directory,
      ...(mounts === undefined ? {} : { [mountsLabel]: mountsText(mounts) }),
      ...(stopGraceMs === undefined ? {} : { [labels.stopGrace]: String(stopGraceMs) }),
    },
    ...(place.networkOf === undefined
      ? { Hostname: spec.hostname, ExposedPorts: Object.fromEntries(place.ports.map((port) => [portName(port), {}])) }
      : {}),
    HostConfig: {
      ...(place.networkOf === undefined
        ? {
            PortBindings: portBindings(place),
            ...(place.network === undefined ? {} : { NetworkMode: place.network }),
            ...(place.hasLinkLocal ? { Sysctls: { 'net.ipv6.conf.eth0.disable_ipv6': '1' } } : {}),
          }
        : { NetworkMode: `container:${place.networkOf}` }),
      NanoCpus: Math.round((container.cpus ?? spec.cpus) * 1e9),
      Memory: memoryBytes,
      MemorySwap: memoryBytes, // equal to the memory: no swap
      PidsLimit: processesMax,
      ...(mounts === undefined ? {} : { Mounts: mounts.map(mountConfig) }),
      Privileged: false,
      SecurityOpt: ['no-new-privileges'],
      CapDrop: dropped,
      RestartPolicy: { Name: 'no' }, // the control plane decides about restarts
      LogConfig: { Type: 'json-file', Config: { 'max-size': String(logBytesMax) } },
    },
  };
}

export const portName = ({ guestPort, protocol }: Pick<GuestPort, 'guestPort' | 'protocol'>): string =>
  `${guestPort}/${protocol}`;

function portBindings({ ports, bindAddress }: ContainerPlace): Record<string, { HostIp: string; HostPort: string }[]> {
  const bindings: Record<string, { HostIp: string; HostPort: string }[]> = {};
  for (const port of ports)
    (bindings[portName(port)] ??= []).push({ HostIp: bindAddress, HostPort: String(port.hostPort) });
  return bindings;
}
