// The values of secrets that an assignment names. They are in memory only: the ledger on the disk of the host has the
// names, and after a restart of the agent the control plane sends the values again.

import type { Assignment } from '../../api/agent-protocol.ts';
import type { Env } from '../../api/resources/container.ts';
import type { GuestCredential } from '../images/credentials/image-credentials.ts';
import { DriverError } from '../host/driver-error.ts';

type Naming = Pick<Assignment, 'run' | 'containers' | 'imageCredentials' | 'secrets'>;

/** Whether it names secrets whose values are not here yet. */
export function lacksValues({ run, containers, imageCredentials, secrets }: Naming): boolean {
  if (secrets !== undefined) return false;
  if (imageCredentials !== undefined) return true;
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

/** Throws `DriverError` for a value that was deleted. */
export function credentialsWithValues({
  imageCredentials,
  secrets,
}: Pick<Assignment, 'imageCredentials' | 'secrets'>): GuestCredential[] | undefined {
  return imageCredentials?.map(({ prefix, username, secret, key }) => {
    const value = secrets?.[secret]?.[key];
    if (value === undefined)
      throw new DriverError(
        'NotPossible',
        `the credential for images of ${prefix}: secret "${secret}" does not exist any more, or has no value "${key}"`,
      );
    return { prefix, username, secret: value.replace(/\r?\n$/, '') };
  });
}

/** Every value of secrets that it has. */
export function valuesIn(secrets: Assignment['secrets']): string[] {
  return Object.values(secrets ?? {}).flatMap((values) => Object.values(values));
}

/** As it is written to a disk. */
export function withoutValues({ secrets: _, ...assignment }: Assignment): Assignment {
  return assignment;
}
