// The drivers an agent can have: one line each.

import type { Clock } from '../../base/clock.ts';
import type { Logger } from '../../base/log.ts';
import type { Prng } from '../../base/prng.ts';
import type { ImageCache } from '../images/image-cache.ts';
import type { Driver } from './driver.ts';
import { createFakeDriver } from './fake/driver.ts';
import { createFakeWorld } from './fake/world.ts';
import { createLibvirtDriver } from './libvirt/driver.ts';
import { createQemuDriver } from './qemu/driver.ts';

export interface DriverContext {
  /** For this driver's guests alone. */
  readonly directory: string;
  readonly images: ImageCache;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Where published ports listen. */
  readonly bindAddress?: string;
  readonly portRange?: { readonly first: number; readonly last: number };
  /** Which libvirt, and which of its networks. */
  readonly libvirt?: { readonly uri: string; readonly network: string };
}

export const drivers: Readonly<Record<string, (context: DriverContext) => Driver>> = {
  qemu: (context) => createQemuDriver(context),
  libvirt: ({ libvirt, ...context }) => createLibvirtDriver({ ...context, ...libvirt }),
  fake: ({ clock, prng }) => createFakeDriver({ world: createFakeWorld({ clock }), host: 'this', prng }),
};
