// The record of one guest on disk, by which the next agent finds the guest. It is written before each action, and always whole: a reader sees the
// old record or the new one. It holds no user-data and no keys, which are in the seed only.

import { link, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Static, Type } from 'typebox';
import { Check } from 'typebox/value';
import { Accelerator, GuestState, Phase, PublishedPort } from '../../../api/agent-protocol.ts';
import { bootFields } from '../../../api/instances/firmware.ts';
import { syncDirectory, writeWhole } from '../../host/write-whole.ts';
import { GuestNetwork } from '../../network/guest-network.ts';

const version = 1;

const RecordedVolume = Type.Object({
  volumeId: Type.String(),
  name: Type.String(),
  path: Type.String(),
  readOnly: Type.Boolean(),
  /** Its bus address in a guest that arrived live. Absent: QEMU chooses it. */
  slot: Type.Optional(Type.Integer()),
});

export const GuestRecord = Type.Object({
  version: Type.Literal(version),
  instanceId: Type.String(),
  incarnation: Type.Integer({ minimum: 0 }),
  uuid: Type.String(),
  state: GuestState,
  reason: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
  /** True once the guest was running: from then on `create` has nothing left to do. */
  created: Type.Boolean(),
  /** True from the first to the last step of `remove`. */
  removing: Type.Boolean(),
  /** True from before QEMU is started until its pid is recorded: meanwhile an unrecorded process may run. */
  launching: Type.Boolean(),
  stopRequested: Type.Boolean(),
  /** The guest did not power off in this time, and is ended by force. Absent: force was not needed. */
  stopForcedAfterMs: Type.Optional(Type.Number()),
  /** How the guest of the last run ended by itself. Recorded before its remaining hypervisor process is ended. */
  guestEnd: Type.Optional(Type.Union([Type.Literal('guest-shutdown'), Type.Literal('guest-panic')])),
  /** Why the hypervisor of the last run stopped the guest for good. Recorded before the hypervisor is ended. */
  halt: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
  /** KVM could not run the guest, so it runs under TCG. Pending: the machine under KVM has to be ended, and one under TCG started. */
  fallback: Type.Optional(
    Type.Object({
      hostBootId: Type.String(),
      pending: Type.Boolean(),
      reason: Type.Object({ code: Type.String(), message: Type.String() }),
    }),
  ),
  /** True: the guest runs and was suspended when it was last looked at. Absent: it was not. */
  suspended: Type.Optional(Type.Boolean()),
  /** True: its memory is being written to a file, which is not whole before `saved`. */
  saving: Type.Optional(Type.Literal(true)),
  /** True: all of its memory is in a file, and no machine may run. A machine that is found has not finished to end, or to read the file: it is ended. */
  saved: Type.Optional(Type.Literal(true)),
  /** True: its machine waits for the memory of a guest from another host, and must be ended if the memory does not arrive. */
  incoming: Type.Optional(Type.Literal(true)),
  /** Its memory may be complete on the target of this move: it is paused until its agent learns the result of the move. */
  handedOver: Type.Optional(Type.Object({ id: Type.String(), revision: Type.Integer() })),
  cpus: Type.Integer({ minimum: 1 }),
  memoryMiB: Type.Integer({ minimum: 1 }),
  /** The order of its last resize. Absent: none. */
  resized: Type.Optional(Type.Integer()),
  ...bootFields,
  seeded: Type.Boolean(),
  /** True: the guest has a disk with its program, and the runner's port. Absent: it has neither. */
  runDisk: Type.Optional(Type.Literal(true)),
  /** The names of a group of containers; the first container has the network. */
  containers: Type.Optional(Type.Array(Type.String())),
  /** With the host ports that were taken, and after a start the address that they listen on. */
  ports: Type.Array(PublishedPort),
  /** The guest's place in the network of its host. Absent: it is on the hypervisor's user network, or on a network of libvirt. */
  network: Type.Optional(GuestNetwork),
  /** All volumes that the guest may have open. Recorded before the guest gets a volume, and until it has released it. Absent: none. */
  volumes: Type.Optional(Type.Array(RecordedVolume)),
  accelerator: Type.Optional(Accelerator),
  imageDigest: Type.Optional(Type.String()),
  /** The backing file of the disk at its creation. The header of the disk is not trusted, because the guest's hypervisor can write it. */
  image: Type.Optional(
    Type.Object({ path: Type.String(), format: Type.Union([Type.Literal('qcow2'), Type.Literal('raw')]) }),
  ),
  /** The process last started for this guest. Only a hint, which is verified before use. */
  process: Type.Optional(Type.Object({ pid: Type.Integer({ minimum: 2 }), startTicks: Type.Integer({ minimum: 0 }) })),
  hostBootId: Type.Optional(Type.String()),
  startedAtMs: Type.Optional(Type.Number()),
  /** Where in the console log the current boot begins. */
  bootOffset: Type.Integer({ minimum: 0 }),
  /** Where the console log begins; everything before was dropped. */
  consoleStart: Type.Integer({ minimum: 0 }),
  ready: Type.Boolean(),
  address: Type.Optional(Type.String()),
  phases: Type.Array(Phase),
});
export type GuestRecord = Readonly<Static<typeof GuestRecord>>;

export type ReadRecord =
  | { readonly found: 'record'; readonly record: GuestRecord }
  | { readonly found: 'nothing' }
  | { readonly found: 'damage' }
  /** Written by a newer version of Berth: the record is whole, and this version must not change it. */
  | { readonly found: 'newer'; readonly version: number };

const fileName = 'guest.json';
/** The record before the last change, for the case that the current one is damaged while its guest runs. */
const previousName = 'guest.json.old';
const Versioned = Type.Object({ version: Type.Integer() });

export function readGuestRecord(directory: string): Promise<ReadRecord> {
  return readRecord(join(directory, fileName));
}

export function readPreviousRecord(directory: string): Promise<ReadRecord> {
  return readRecord(join(directory, previousName));
}

/** Puts the previous record in the place of a damaged one. */
export async function restorePreviousRecord(directory: string): Promise<void> {
  await rename(join(directory, previousName), join(directory, fileName));
  await syncDirectory(directory);
}

async function readRecord(path: string): Promise<ReadRecord> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if (error instanceof Error && 'code' in error && error.code === 'ENOENT') return { found: 'nothing' };
    throw error;
  }
  try {
    const value: unknown = JSON.parse(text);
    if (Check(Versioned, value) && value.version > version) return { found: 'newer', version: value.version };
    return Check(GuestRecord, value) ? { found: 'record', record: value } : { found: 'damage' };
  } catch {
    return { found: 'damage' }; // not JSON: as unusable as JSON of another form
  }
}

export async function writeGuestRecord(directory: string, record: GuestRecord): Promise<void> {
  // Optional: the record is written even if the disk is full or has no hard links.
  await keepPrevious(directory).catch(() => {});
  await writeWhole(join(directory, fileName), `${JSON.stringify(record, null, 1)}\n`);
}

/** Links the file that is about to be replaced to a second name. */
async function keepPrevious(directory: string): Promise<void> {
  const kept = join(directory, previousName);
  await rm(kept, { force: true });
  await link(join(directory, fileName), kept);
}
