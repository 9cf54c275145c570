// The checks of a container image that its schema cannot express: format, source and driver must match. Pure.

import { containerTransport, readContainerReference } from './container-reference.ts';
import { ApiError } from './errors.ts';
import type { ImageSpec } from './resources/image.ts';

/** Runs containers only. */
export const containerDriver = 'container';

/** Drivers that simulate any guest. */
const pretendingDrivers: readonly string[] = ['fake'];

export const isContainerImage = ({ format }: Pick<ImageSpec, 'format'>): boolean => format === 'container';

/** Whether a driver can run this kind of image. */
export const driverFits = (driver: string, container: boolean): boolean =>
  pretendingDrivers.includes(driver) || (driver === containerDriver) === container;

/** Throws `InvalidRequest` naming the field below `at`. */
export function assertContainerImage(spec: ImageSpec, at = 'spec.'): void {
  const container = isContainerImage(spec);
  const fault = (field: string, message: string): ApiError =>
    new ApiError('InvalidRequest', `${at}${field}: ${message}`, { field: `${at}${field}` });
  for (const [field, url] of [['source', spec.source], ...(spec.mirrors ?? []).map((each) => ['mirrors', each])])
    if (/^https?:\/\/[^/?#]*@/i.test(url ?? ''))
      throw fault(
        field ?? '',
        'a URL with a name or password in it is not taken: everybody who may read images sees it',
      );
  if (spec.backend !== undefined && !driverFits(spec.backend, container))
    throw fault('backend', `the driver "${spec.backend}" does not run images of format ${spec.format}`);
  if (!container) {
    if (spec.pullPolicy !== undefined)
      throw fault(
        'pullPolicy',
        'only a container image has one; hosts fetch a disk image again when its specification changes',
      );
    if (!spec.source.startsWith(containerTransport)) return;
    throw fault('format', `what is at ${containerTransport} is a container image; set format: container`);
  }
  const read = readContainerReference(spec.source);
  if (!read.ok)
    throw fault('source', `this is not a container image, docker://REGISTRY/NAME:TAG[@sha256:...]: ${read.fault}`);
  for (const field of ['checksum', 'localPath'] as const)
    if (spec[field] !== undefined)
      throw fault(field, 'a container image has none: its engine stores it, and a digest in its source identifies it');
}
