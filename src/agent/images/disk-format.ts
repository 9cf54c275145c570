// Keeps container images out of the cache of disks: they are the container engine's to keep.

import { DriverError } from '../host/driver-error.ts';
import type { ImageSpec } from '../../api/agent-protocol.ts';

/** Throws `ImageInvalid` for what is no disk. */
export function diskFormat(name: string, { format }: Pick<ImageSpec, 'format'>): 'qcow2' | 'raw' {
  if (format !== 'container') return format;
  throw new DriverError('ImageInvalid', `image "${name}" is a container image: no virtual machine can boot from it`);
}
