// What each run state of QEMU makes of its guest: one total table, used for machines of libvirt's as well. Pure.

import { held, internalErrorCode, type Standing, standings } from '../guest-life/standing.ts';

const by = 'QEMU';
const migrating = 'somebody migrates it, which Berth did not ask for';

/** `RunState` of QEMU's qapi/run-state.json, all of 7.2 to 10.0. */
export const runStates = {
  running: standings.running,
  prelaunch: held(by, 'it has not been started (run state "prelaunch")'),
  paused: standings.suspended,
  suspended: standings.asleep,
  'io-error': standings['waiting-for-disk'],
  shutdown: standings['powered-off'],
  'guest-panicked': standings.panicked,
  watchdog: standings.watchdog,
  'internal-error': {
    guest: 'halted',
    reason: {
      code: internalErrorCode,
      message: 'QEMU stopped the guest with an internal error (run state "internal-error")',
    },
  },
  debug: held(by, 'a debugger stopped it (run state "debug")'),
  inmigrate: held(by, migrating),
  'finish-migrate': held(by, migrating),
  postmigrate: held(by, 'somebody moved it to another host, which Berth did not ask for'),
  colo: held(by, migrating),
  'save-vm': held(by, 'somebody saves its memory; it goes on afterwards'),
  'restore-vm': held(by, 'somebody restores its memory; it goes on afterwards'),
} as const satisfies Readonly<Record<string, Standing>>;

/** Also of a run state that only a newer QEMU knows. */
export function standingOf(runState: string): Standing {
  const known: Readonly<Record<string, Standing>> = runStates;
  return (
    (Object.hasOwn(known, runState) && known[runState]) || held(by, `its run state "${runState}" is not known here`)
  );
}
