// What every operation of the QEMU driver works with: the options with their defaults filled in, the slots of the guests, the
// ports. Holds no rule about guests.

import { mkdir, realpath } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import { join } from 'node:path';
import type { Accelerator } from '../../../api/agent-protocol.ts';
import type { Clock } from '../../../base/clock.ts';
import type { Logger } from '../../../base/log.ts';
import type { Prng } from '../../../base/prng.ts';
import type { ImageCache } from '../../images/image-cache.ts';
import type { Fingerprint } from '../driver.ts';
import { createHostLook } from './host-look.ts';
import { createPortBook, type PortBook, type PortRange } from './ports.ts';
import type { RunOptions } from './run.ts';
import { createSlots, type Slot, type Slots } from './slots.ts';

export interface QemuDriverOptions {
  /** Where guests live, one folder each. This driver's alone. */
  readonly directory: string;
  readonly images: ImageCache;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Where published ports listen. Default 127.0.0.1. */
  readonly bindAddress?: string;
  /** Where ports come from that nobody chose. Default 20000-29999. */
  readonly portRange?: PortRange;
  /** Default: KVM where a probe guest ran under it, else TCG. */
  readonly accelerator?: 'kvm' | 'tcg';
  readonly consoleBytesMax?: number;
  readonly consoleBytesKept?: number;
  readonly qemuProgram?: string;
  readonly qemuImgProgram?: string;
}

export interface Hands {
  readonly images: ImageCache;
  readonly clock: Clock;
  readonly log: Logger;
  readonly bindAddress: string;
  readonly qemu: string;
  readonly qemuImg: string;
  readonly consoleLimits: { readonly maxBytes: number; readonly keptBytes: number };
  readonly ports: PortBook;
  readonly slots: Slots;
  /** As it was given: for people. */
  readonly directory: string;
  /** The guests' folder, without symbolic links, as the kernel shows it for a process's working directory. */
  root(): Promise<string>;
  directoryOf(instanceId: string): Promise<string>;
  runOptions(slot: Slot, uuid: string): Promise<RunOptions>;
  fingerprint(): Promise<Fingerprint>;
  chosenAccelerator(): Promise<Accelerator>;
}

export function createHands(options: QemuDriverOptions): Hands {
  const { clock, log } = options;
  const bindAddress = options.bindAddress ?? '127.0.0.1';
  if (!isIPv4(bindAddress))
    throw new RangeError(`QEMU can publish ports on IPv4 addresses only, not on "${bindAddress}"`);
  const qemu = options.qemuProgram ?? 'qemu-system-x86_64';
  const qemuImg = options.qemuImgProgram ?? 'qemu-img';

  let rooting: Promise<string> | undefined;
  const root = (): Promise<string> => {
    rooting ??= mkdir(options.directory, { recursive: true, mode: 0o700 })
      .then(() => realpath(options.directory))
      .catch((error: unknown) => {
        rooting = undefined;
        throw error;
      });
    return rooting;
  };
  const directoryOf = async (instanceId: string): Promise<string> => join(await root(), instanceId);

  return {
    images: options.images,
    clock,
    log,
    bindAddress,
    qemu,
    qemuImg,
    consoleLimits: {
      maxBytes: options.consoleBytesMax ?? 4 * 1024 * 1024,
      keptBytes: options.consoleBytesKept ?? 2 * 1024 * 1024,
    },
    ports: createPortBook({ bindAddress, range: options.portRange ?? { first: 20_000, last: 29_999 } }),
    slots: createSlots({ directoryOf, log }),
    directory: options.directory,
    root,
    directoryOf,
    runOptions: async (slot, uuid) => ({
      directory: await directoryOf(slot.instanceId),
      uuid,
      clock,
      prng: options.prng,
      log: log.with({ instance: slot.instanceId }),
    }),
    ...createHostLook({ clock, qemu, qemuImg, root, accelerator: options.accelerator }),
  };
}
