// What all drivers of real guests have in common: makes, runs and removes guests on this host, with whatever hypervisor it is given. Every step is on disk
// before it is taken, so that an agent killed between any two of them finds its guests again; and no guest ever runs twice.
//
//   create ─► preparing ─► running ─► stopped (asked for) ─► running (start)
//                │           │  ▲
//                │           ▼  │ (suspend, resume; stop lets it go on first)
//                │         suspended
//                │            ├─────► exited  (powered itself off)
//                ▼            └─────► failed  (the hypervisor died, the guest panicked)
//              failed                                          any ─► remove ─► nothing

import { join } from 'node:path';
import type { Driver } from '../driver.ts';
import { accessTo } from './ways-in/access.ts';
import { readConsole } from './ways-in/console-log.ts';
import { createGuest } from './create.ts';
import { migrationOf } from './disk/move-disk.ts';
import { exportDisk } from './disk/export-disk.ts';
import { liveMigrationOf } from './live/live-migration.ts';
import { noSuchGuest } from './errors.ts';
import { guestFiles } from './guest-files.ts';
import { createHands, type VmDriverOptions } from './hands.ts';
import { startGuest, stopGuest } from './power.ts';
import { asGuest } from './records.ts';
import { recoverGuests } from './recover.ts';
import { resizeGuest } from './resize.ts';
import { removeGuest } from './remove.ts';
import { abortAll, checkId } from './slots.ts';
import { suspensionOf } from './suspension.ts';
import { usageOf } from './usage.ts';
import { volumesOf } from './disk/volumes.ts';

export function createVmDriver(options: VmDriverOptions): Driver {
  const hands = createHands(options);
  const { slots } = hands;
  return {
    name: hands.hypervisor.name,
    fingerprint: () => hands.hypervisor.fingerprint(),
    describe: async (instanceId) => slots.get(instanceId)?.run?.describe?.(),
    changes: () => hands.hypervisor.changes?.() ?? 0,
    recover: () => recoverGuests(hands),
    guests: () =>
      slots.all().flatMap(({ record, progress }) => (record === undefined ? [] : [asGuest(record, progress)])),
    watch: (listener, signal) => slots.watch(listener, signal),
    create: (spec, signal) => createGuest(hands, spec, signal),
    start: (instanceId) => startGuest(hands, instanceId),
    stop: (instanceId, graceMs) => stopGuest(hands, instanceId, graceMs),
    remove: (instanceId) => removeGuest(hands, instanceId),
    async readLog(instanceId, offset, limit) {
      checkId(instanceId);
      const record = slots.get(instanceId)?.record;
      if (record === undefined) throw noSuchGuest('read the log of', instanceId);
      const path = join(await hands.directoryOf(instanceId), guestFiles.console);
      return readConsole(path, { start: record.consoleStart, offset, limit });
    },
    access: accessTo(hands),
    ...(hands.hypervisor.measures ? { usage: () => usageOf(slots, options.log) } : {}),
    ...(hands.hypervisor.suspends ? { suspension: suspensionOf(hands) } : {}),
    ...(hands.hypervisor.volumes ? { volumes: volumesOf(hands) } : {}),
    // Where a hypervisor makes disks of its own, they are nothing to copy as files.
    ...(hands.hypervisor.make || hands.hypervisor.makeDisk
      ? {}
      : {
          exportDisk: (instanceId, signal) => exportDisk(hands, instanceId, signal),
          ...(hands.hypervisor.migrates
            ? {
                migration: migrationOf(hands),
                ...(hands.hypervisor.live ? { live: liveMigrationOf(hands, hands.hypervisor.live) } : {}),
                // Its machine is described by the record at each start.
                resize: (instanceId, size) => resizeGuest(hands, instanceId, size),
              }
            : {}),
        }),
    async close() {
      slots.close();
      for (const slot of slots.all()) {
        abortAll(slot.creating);
        abortAll(slot.stopping);
        slot.console?.stop();
        slot.run?.detach();
      }
      await slots.quiet();
      hands.hypervisor.close?.();
      await hands.hypervisor.network?.close();
    },
  };
}
