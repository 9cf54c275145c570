// Whether the requested containers are valid: they use container images, stay within the instance's amounts, and have
// distinct ports on the network they share; and the driver can run the image.

import { containerDriver, driverFits, isContainerImage } from '../../api/container-image.ts';
import { ApiError } from '../../api/errors.ts';
import { portsMax, portsOf } from '../../api/instance-ports.ts';
import { nearest } from '../../api/nearest.ts';
import type { Image } from '../../api/resources/image.ts';
import { type AskingSpec, roomOf } from '../scheduler/demand.ts';
import { assertMounts } from './instances/mounts.ts';
import type { Snapshot } from '../state/snapshot.ts';

/** For a spec whose image and size exist. Throws `InvalidRequest` naming the field. */
export function assertContainers(snapshot: Snapshot, spec: AskingSpec): void {
  const image = spec.image === undefined ? undefined : snapshot.imageByName(spec.image)?.value;
  if (image) assertDriver(image, spec.placement.driver);
  if (image && isContainerImage(image.spec)) assertNoBoot(spec);
  if (spec.containers === undefined) return;
  if (image && !isContainerImage(image.spec)) throw refusalForMachine(image.metadata.name, spec.containers);
  for (const [i, { name, image: other }] of spec.containers.entries()) {
    if (spec.containers.findIndex((each) => each.name === name) < i)
      throw invalid(`spec.containers[${i}].name`, `there are two containers "${name}"`);
    if (other !== undefined) assertImage(snapshot, other, { at: `spec.containers[${i}].image`, beside: image });
  }
  assertLimits(snapshot, spec, spec.containers);
  assertMounts(snapshot, {
    containers: spec.containers,
    placement: spec.placement,
    ...(spec.volumes === undefined ? {} : { volumes: spec.volumes }),
  });
  assertPorts(spec, spec.containers);
}

function assertNoBoot({ firmware, tpm }: AskingSpec): void {
  if (firmware !== undefined) throw invalid('spec.firmware', 'containers have no firmware of their own; leave it out');
  if (tpm) throw invalid('spec.tpm', 'containers have no TPM; leave it out');
}

type Containers = NonNullable<AskingSpec['containers']>;

/** A part of a CPU comes first: `berth run --cpus 0.5` names no container. */
function refusalForMachine(image: string, containers: Containers): ApiError {
  const at = containers.findIndex(({ cpus }) => cpus !== undefined && !Number.isInteger(cpus));
  if (at >= 0)
    return invalid(
      `spec.containers[${at}].cpus`,
      `image "${image}" is of a virtual machine, which has whole CPUs only, not ${containers[at]?.cpus}; only containers share a CPU`,
    );
  return invalid(
    'spec.containers',
    `image "${image}" is of a virtual machine, which has no containers; name an image of format container`,
  );
}

function assertDriver({ metadata, spec }: Image, driver: string | undefined): void {
  const container = isContainerImage(spec);
  if (driver === undefined || driverFits(driver, container)) return;
  throw invalid(
    'spec.placement.driver',
    container
      ? `image "${metadata.name}" is of containers, which the driver "${driver}" does not run; leave it out, or name "${containerDriver}"`
      : `image "${metadata.name}" is of a virtual machine, and the driver "${driver}" runs containers only`,
  );
}

function assertImage(
  snapshot: Snapshot,
  word: string,
  { at, beside }: { readonly at: string; readonly beside: Image | undefined },
): void {
  const found = snapshot.imageByName(word)?.value;
  if (!found) {
    const known = [...snapshot.list('image')].flatMap(({ value }) => [value.metadata.name, ...value.spec.aliases]);
    const meant = nearest(word, known);
    throw invalid(
      at,
      `there is no image "${word}"${meant ? `; did you mean "${meant}"?` : '; "berth image ls" lists them'}`,
    );
  }
  if (!isContainerImage(found.spec))
    throw invalid(at, `image "${word}" is of a virtual machine and cannot run in a container`);
  if (beside && found.spec.architecture !== beside.spec.architecture)
    throw invalid(
      at,
      `image "${word}" is for ${found.spec.architecture}, and the instance for ${beside.spec.architecture}`,
    );
}

/** Their limits together may not exceed the instance's amounts. */
function assertLimits(snapshot: Snapshot, spec: AskingSpec, containers: Containers): void {
  const room = roomOf(snapshot, spec);
  for (const field of ['cpus', 'memoryMiB', 'diskGiB'] as const) {
    let sum = 0;
    for (const [i, container] of containers.entries()) {
      sum += container[field] ?? 0;
      // A thousandth of a CPU is lost when tenths are added.
      if (sum > room[field] + 0.001)
        throw invalid(
          `spec.containers[${i}].${field}`,
          `the limits of the containers come to ${Number(sum.toFixed(3))}, and the instance has ${room[field]}; lower them, or raise spec.${field}`,
        );
    }
  }
}

function assertPorts(spec: AskingSpec, containers: Containers): void {
  const holders = new Map<string, string>();
  const [first] = containers;
  for (const { guestPort, protocol } of spec.ports) holders.set(`${guestPort}/${protocol}`, first?.name ?? '');
  const hostPorts = new Set(spec.ports.map(({ hostPort, protocol }) => `${hostPort}/${protocol}`));
  for (const [i, { name, ports }] of containers.entries()) {
    for (const [j, { containerPort, hostPort, protocol }] of ports.entries()) {
      const at = `spec.containers[${i}].ports[${j}]`;
      const port = `${containerPort}/${protocol}`;
      const holder = holders.get(port);
      if (holder !== undefined)
        throw invalid(
          `${at}.containerPort`,
          `port ${port} is published by container "${holder}" already, and the containers of an instance share one network`,
        );
      holders.set(port, name);
      if (hostPort !== 0 && hostPorts.has(`${hostPort}/${protocol}`))
        throw invalid(`${at}.hostPort`, `host port ${hostPort}/${protocol} is requested twice`);
      hostPorts.add(`${hostPort}/${protocol}`);
    }
  }
  if (portsOf(spec).length > portsMax)
    throw invalid('spec.containers', `an instance publishes ${portsMax} ports at most, with all of its containers`);
}

const invalid = (field: string, message: string): ApiError => new ApiError('InvalidRequest', message, { field });
