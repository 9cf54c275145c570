// Knows whether a machine's processors stand still for a wish, by looking whenever something may have changed, and makes it so. Never
// trusts that what was asked for has come about: it looks.

import { describeError, type Logger } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { RunSuspension } from './hypervisor.ts';

export interface SuspensionWatch extends RunSuspension {
  /** Something may have changed. What cannot be looked at now is left as it was known: a new connection looks again. */
  lookSoon(): void;
  /** Somebody has looked. */
  seen(suspended: boolean): void;
}

export function watchSuspension(machine: {
  /** Whether it stands still for a wish, and for no other reason. */
  readonly look: () => Promise<boolean>;
  readonly suspend: () => Promise<void>;
  readonly resume: () => Promise<void>;
  /** For people. */
  readonly what: string;
  readonly log: Logger;
}): SuspensionWatch {
  const listeners: ((suspended: boolean) => void)[] = [];
  let known: boolean | undefined;
  let looking: Promise<boolean> | undefined;
  let again = false;

  const seen = (suspended: boolean): void => {
    if (suspended === known) return;
    known = suspended;
    for (const listener of listeners) listener(suspended);
  };
  const lookUntilStill = async (): Promise<boolean> => {
    for (;;) {
      again = false;
      const suspended = await machine.look();
      if (again) continue;
      looking = undefined; // before the listeners run: calls from now on must look again
      seen(suspended);
      return suspended;
    }
  };
  /** Resolves with what was seen after the call. */
  const look = (): Promise<boolean> => {
    again = true;
    looking ??= lookUntilStill().catch((error: unknown) => {
      looking = undefined;
      throw error;
    });
    return looking;
  };

  return {
    async suspend() {
      if (await look()) return;
      await machine.suspend();
      if (await look()) return;
      throw new DriverError('NotPossible', `${machine.what} cannot be suspended now: something else holds it`);
    },
    async resume() {
      if (!(await look())) return;
      await machine.resume();
      if (!(await look())) return;
      throw new DriverError('HypervisorFailed', `${machine.what} stays suspended, though it was told to go on`);
    },
    onChange(listener) {
      listeners.push(listener);
      if (known !== undefined) listener(known);
    },
    lookSoon() {
      look().catch((error: unknown) =>
        machine.log.debug('cannot see whether a guest is suspended', { error: describeError(error) }),
      );
    },
    seen,
  };
}
