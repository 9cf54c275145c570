// The values of secrets that an assignment names. They are in memory only: the ledger on the disk of the host has the
// names, and after a restart of the agent the control plane sends the values again.

import type { Assignment } from '../../api/agent-protocol.ts';
import type { Env } from '../../api/resources/container.ts';
import { DriverError } from '../host/driver-error.ts';

type Naming = Pick<Assignment, 'run' | 'containers' | 'secrets'>;

/** Whether it names secrets whose values are not here yet. */
export function lacksValues({ run, containers, secrets }: Naming): boolean {
  if (secrets !== undefined) return false;
  return [run, ...(containers ?? [])].some((each) => each !== undefined && namesSecrets(each.env));
}

function namesSecrets(env: Env): boolean {
  return Object.values(env).some((value) => typeof value === 'object');
}

/** Throws `DriverError` for a value that was deleted. */
export function withValues(env: Env, secrets: Assignment['secrets']): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).map(([name, value]) => {
      if (typeof value === 'string') return [name, value];
      const found = secrets?.[value.secret]?.[value.key];
      if (found === undefined)
        throw new DriverError(
          'NotPossible',
          `environment variable ${name}: secret "${value.secret}" does not exist any more, or has no value "${value.key}"`,
        );
      return [name, found];
    }),
  );
}

/** Every value of secrets that it has. */
export function valuesIn(secrets: Assignment['secrets']): string[] {
  return Object.values(secrets ?? {}).flatMap((values) => Object.values(values));
}

/** As it is written to a disk. */
export function withoutValues({ secrets: _, ...assignment }: Assignment): Assignment {
  return assignment;
}
