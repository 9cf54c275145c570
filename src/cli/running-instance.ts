// The instance that somebody wants to get into, asked for before anything is promised of it. It opens nothing.

import type { Instance } from '../api/resources/instance.ts';
import { attempting, CommandError, exitCodes } from './exit-codes.ts';
import type { Session } from './session.ts';

/** Throws what the API says when there is no such instance, or that it has no guest that runs; `attempt` is what it was wanted for. */
export async function runningInstance(
  { client, project }: Session,
  { name, attempt }: { readonly name: string; readonly attempt: string },
): Promise<Instance> {
  const instance = await attempting(attempt, () => client.get('instance', name, { project }), {
    NotFound: '"berth ps" shows the instances',
  });
  const { metadata, status } = instance;
  if (status.phase === 'Running') return instance;
  throw new CommandError(exitCodes.badOutcome, `instance "${metadata.name}" does not run: it is ${status.phase}`, {
    advice: `"berth explain ${metadata.name}" says why`,
  });
}
