// What the driver remembers of one guest on disk, so that the next agent finds it again. Written before acting, and always
// whole: a reader sees the old record or the new one. No user-data and no keys: those are in the seed only.

import { link, readFile, rename, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { type Static, Type } from 'typebox';
import { Check } from 'typebox/value';
import { Accelerator, GuestState, Phase, PublishedPort } from '../../../api/agent-protocol.ts';
import { syncDirectory, writeWhole } from '../../host/write-whole.ts';
import { GuestNetwork } from '../../network/guest-network.ts';

const version = 1;

const RecordedVolume = Type.Object({
  volumeId: Type.String(),
  name: Type.String(),
  path: Type.String(),
  readOnly: Type.Boolean(),
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
  /** True from before QEMU is started until its pid is here: then a process may run that we do not know. */
  launching: Type.Boolean(),
  stopRequested: Type.Boolean(),
  /** It did not power off in this time, and is ended by force. Absent: that was not needed. */
  stopForcedAfterMs: Type.Optional(Type.Number()),
  /** How the guest of the last run ended by itself, where what ran it stayed to tell: noted before that is ended. */
  guestEnd: Type.Optional(Type.Union([Type.Literal('guest-shutdown'), Type.Literal('guest-panic')])),
  /** Why the hypervisor of the last run stopped the guest for good: noted before that is ended. */
  halt: Type.Optional(Type.Object({ code: Type.String(), message: Type.String() })),
  /** KVM could not run it, so it runs under TCG. Pending: the machine that KVM could not run is to be ended, and the next one to be started. */
  fallback: Type.Optional(
    Type.Object({
      hostBootId: Type.String(),
      pending: Type.Boolean(),
      reason: Type.Object({ code: Type.String(), message: Type.String() }),
    }),
  ),
  /** Of one that runs: its processors stood still when it was last looked at. Absent: they did not. */
  suspended: Type.Optional(Type.Boolean()),
  cpus: Type.Integer({ minimum: 1 }),
  memoryMiB: Type.Integer({ minimum: 1 }),
  seeded: Type.Boolean(),
  /** Of a group of containers: their names, the first the one that has the network. */
  containers: Type.Optional(Type.Array(Type.String())),
  /** With the host ports that were really taken, and once it was started where they listen. */
  ports: Type.Array(PublishedPort),
  /** Its place in the network of its host. Absent: it is alone behind the hypervisor's user network, or in one of libvirt's. */
  network: Type.Optional(GuestNetwork),
  /** All that it may have open, and has from its next start: noted before it gets one, and until it has let go. Absent: none. */
  volumes: Type.Optional(Type.Array(RecordedVolume)),
  accelerator: Type.Optional(Accelerator),
  imageDigest: Type.Optional(Type.String()),
  /** What the disk is an overlay of, as it was made: the disk's own header is within reach of the guest's hypervisor. */
  image: Type.Optional(
    Type.Object({ path: Type.String(), format: Type.Union([Type.Literal('qcow2'), Type.Literal('raw')]) }),
  ),
  /** The process last started for this guest. A hint: it is looked up before it is believed. */
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
  /** Written by a newer Berth, which knows how to read it: it is whole, and not ours to judge. */
  | { readonly found: 'newer'; readonly version: number };

const fileName = 'guest.json';
/** The record before the last change: for the case that the current one is damaged while its guest runs. */
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
  // A help for later: no reason not to write the record, where the disk is full or has no hard links.
  await keepPrevious(directory).catch(() => {});
  await writeWhole(join(directory, fileName), `${JSON.stringify(record, null, 1)}\n`);
}

/** A second name for the file that is about to be replaced. While it has none, that file is whole. */
async function keepPrevious(directory: string): Promise<void> {
  const kept = join(directory, previousName);
  await rm(kept, { force: true });
  await link(join(directory, fileName), kept);
}
