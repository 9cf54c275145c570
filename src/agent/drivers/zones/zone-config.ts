// The configuration of a guest's zone, as commands for `zonecfg -f`, and the mark that identifies our zones: pure. Properties are
// those of zonecfg(8), attributes those of the bhyve brand (bhyve(7)).

import { DriverError } from '../../host/driver-error.ts';

export interface ZoneConfig {
  /** The folder of the zone's files; its parent is the mount point of a ZFS file system. */
  readonly zonePath: string;
  readonly uuid: string;
  readonly cpus: number;
  readonly memoryMiB: number;
  /** The volume to boot from: `rpool/berth/disk-...`. */
  readonly disk: string;
  /** Absolute path of the NoCloud seed. */
  readonly seed?: string;
  /** The link of the host on which the guest's own link is created. */
  readonly globalNic: string;
}

/** Zone names have at most 63 characters, of letters, digits, `.`, `_` and `-`. */
export const zoneName = (instanceId: string): string => `berth-${instanceId}`;

/** The socket of the guest's serial port, below the root of its zone. */
export const consoleSocket = 'tmp/vm.com1';

export function zoneCommands(config: ZoneConfig): string {
  const { disk, seed, uuid } = config;
  return lines(
    'create -b',
    set('zonepath', config.zonePath),
    set('brand', 'bhyve'),
    set('autoboot', 'false'), // the agent starts guests, not the host's boot
    set('ip-type', 'exclusive'),
    // With a global-nic the VNIC is created when the zone boots, and removed when it halts (zonecfg(8)).
    ...resource(
      'net',
      set('physical', vnicName(uuid)),
      set('global-nic', config.globalNic),
      set('mac-addr', zoneMacAddress(uuid)),
    ),
    ...resource('device', set('match', `/dev/zvol/rdsk/${disk}`)),
    ...attribute(mark, uuid),
    ...attribute('uuid', uuid),
    ...attribute('vcpus', String(config.cpus)),
    ...attribute('ram', `${config.memoryMiB}M`),
    ...attribute('bootdisk', disk),
    ...attribute('console', `socket,/${consoleSocket}`),
    ...attribute('rng', 'on'), // a guest without entropy waits for it at its first boot
    // The brand's own `cloud-init` attribute stays off: it would give the guest a second seed, with the zone's name as hostname,
    // without our keys and without a network configuration.
    ...(seed === undefined
      ? []
      : [
          ...resource(
            'fs',
            set('dir', seed),
            set('special', seed),
            set('type', 'lofs'),
            'add options ro',
            'add options nodevices',
          ),
          ...attribute('cdrom', seed),
        ]),
  );
}

/** The uuid of the zone's guest, from the output of `zonecfg export`; undefined: the zone is not ours. */
export function markOf(exported: string): string | undefined {
  for (const block of exported.split(/^add attr$/m).slice(1)) {
    const values = new Map<string, string>();
    for (const line of (block.split(/^end$/m)[0] ?? '').split('\n')) {
      const found = /^set ([a-z]+)="?([^"]*)"?$/.exec(line.trim());
      if (found?.[1] !== undefined && found[2] !== undefined) values.set(found[1], found[2]);
    }
    if (values.get('name') === mark) return values.get('value');
  }
  return undefined;
}

/** 32 at most (bhyve(7), `vcpus`). */
export const cpusMax = 32;

/** Locally administered, with 40 bits of the uuid: guests of many hosts share one network. */
export function zoneMacAddress(uuid: string): string {
  const hex = uuid.slice(-10);
  return `02:${[0, 2, 4, 6, 8].map((at) => hex.slice(at, at + 2)).join(':')}`;
}

/**
 * Characters that zonecfg accepts in quotes and the hypervisor between the commas and colons of its arguments. Other characters would
 * have to be escaped, and neither documents how.
 */
export function isPlainPath(path: string): boolean {
  return /^\/[A-Za-z0-9._/-]*$/.test(path);
}

const mark = 'berth-guest';

/** Link names have at most 31 characters and end in a number (dladm(8)). */
const vnicName = (uuid: string): string => `berth${uuid.slice(-10)}n0`;

const lines = (...all: string[]): string => `${all.join('\n')}\n`;

function set(property: string, value: string): string {
  if (!/^[A-Za-z0-9._/:,-]+$/.test(value))
    throw new DriverError('Internal', `cannot configure a zone: ${property} cannot be ${JSON.stringify(value)}`);
  return `set ${property}="${value}"`;
}

const resource = (type: string, ...properties: string[]): string[] => [`add ${type}`, ...properties, 'end'];

const attribute = (name: string, value: string): string[] =>
  resource('attr', set('name', name), set('type', 'string'), set('value', value));
