// The parts that every operation of a driver uses: the options with their defaults, the hypervisor, the slots of the guests, the ports. Contains no
// rule about guests.

import { realpath } from 'node:fs/promises';
import { isIPv4 } from 'node:net';
import { join } from 'node:path';
import type { Clock } from '../../../base/clock.ts';
import type { Logger } from '../../../base/log.ts';
import { createPlaces, type Places } from '../../../base/places.ts';
import type { Prng } from '../../../base/prng.ts';
import type { ImageCache } from '../../images/image-cache.ts';
import { type DirectoryMode, makeGuestDirectory } from './disk/disk.ts';
import { createGuestAgents, type GuestAgents } from './ways-in/guest-agents.ts';
import type { GuestRecord } from './guest-record.ts';
import type { Hypervisor, Machine } from './hypervisor.ts';
import { createPortBook, type PortBook, type PortRange } from './ways-in/ports.ts';
import { Slots } from './slots.ts';

export interface VmDriverOptions {
  readonly createHypervisor: (hands: Pick<Hands, 'root' | 'qemuImg'>) => Hypervisor;
  /** The directory of this driver's guests, one folder each. No other driver uses it. */
  readonly directory: string;
  readonly images: ImageCache;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  /** Where published ports listen. Default 127.0.0.1. */
  readonly bindAddress?: string;
  /** The range of ports that the driver chooses. Default 20000-29999. */
  readonly portRange?: PortRange;
  /** A guest without a sign of life for this long after its start is reported. Default 5 min. */
  readonly silenceMsMax?: number;
  readonly consoleBytesMax?: number;
  readonly consoleBytesKept?: number;
  readonly qemuImgProgram?: string;
  /** cloud-init vendor-data, read for each new guest. Default: none. */
  readonly vendorData?: () => Promise<string>;
  /** The mode of the guests' folders. Default 0700; 0711 where the hypervisor runs as another user. */
  readonly directoryMode?: DirectoryMode;
}

export interface Hands {
  readonly images: ImageCache;
  readonly clock: Clock;
  readonly prng: Prng;
  readonly log: Logger;
  readonly bindAddress: string;
  readonly hypervisor: Hypervisor;
  readonly qemuImg: string;
  vendorData(): Promise<string>;
  readonly silenceMsMax: number;
  readonly consoleLimits: { readonly maxBytes: number; readonly keptBytes: number };
  readonly ports: PortBook;
  readonly slots: Slots;
  /** Limits work of launches on this host: to make a disk, to start a machine. Never held during a transfer over the network. */
  readonly launching: Places;
  readonly directoryMode: DirectoryMode;
  /** As configured, for people. */
  readonly directory: string;
  /** The guests' folder, without symbolic links, as the kernel shows it for a process's working directory. */
  root(): Promise<string>;
  directoryOf(instanceId: string): Promise<string>;
  machineOf(record: GuestRecord): Promise<Machine>;
  readonly guestAgents: GuestAgents;
}

/** With hundreds of launches at once, as after a power cut, none would answer within the time limit of launch.ts. */
const launchingMax = 32;

export function createHands(options: VmDriverOptions): Hands {
  const { clock, prng, log } = options;
  const bindAddress = options.bindAddress ?? '127.0.0.1';
  if (!isIPv4(bindAddress))
    throw new RangeError(`ports can be published on IPv4 addresses only, not on "${bindAddress}"`);
  const directoryMode = options.directoryMode ?? 0o700;
  const qemuImg = options.qemuImgProgram ?? 'qemu-img';

  let rooting: Promise<string> | undefined;
  const root = (): Promise<string> => {
    rooting ??= makeGuestDirectory(options.directory, directoryMode)
      .then(() => realpath(options.directory))
      .catch((error: unknown) => {
        rooting = undefined;
        throw error;
      });
    return rooting;
  };
  const directoryOf = async (instanceId: string): Promise<string> => join(await root(), instanceId);

  const hands = {
    images: options.images,
    clock,
    prng,
    log,
    bindAddress,
    hypervisor: options.createHypervisor({ root, qemuImg }),
    qemuImg,
    vendorData: options.vendorData ?? (() => Promise.resolve('')),
    silenceMsMax: options.silenceMsMax ?? 5 * 60_000,
    consoleLimits: {
      maxBytes: options.consoleBytesMax ?? 4 * 1024 * 1024,
      keptBytes: options.consoleBytesKept ?? 2 * 1024 * 1024,
    },
    ports: createPortBook({ bindAddress, range: options.portRange ?? { first: 20_000, last: 29_999 } }),
    slots: new Slots({ directoryOf, log }),
    launching: createPlaces(launchingMax),
    directory: options.directory,
    directoryMode,
    root,
    directoryOf,
    machineOf: async (record: GuestRecord): Promise<Machine> => ({
      record,
      directory: await directoryOf(record.instanceId),
      log: log.with({ instance: record.instanceId }),
    }),
  };
  return { ...hands, guestAgents: createGuestAgents(hands, { clock, prng }) };
}
