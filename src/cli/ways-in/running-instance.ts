// Looks up the instance that a command needs a running guest of. It opens no connection.

import { errorCodes } from '../../api/errors.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { attempting, CommandError } from '../exit-codes.ts';
import { assertNotEnded } from './guest-end.ts';
import type { Session } from '../session.ts';
import { seeInstances } from '../instances/instance-advice.ts';

/**
 * Throws the API's error when there is no such instance, or an error that its guest does not run. `attempt`: what the
 * command wants; `standing`: this is possible for a suspended guest, too.
 */
export async function runningInstance(
  { client, project }: Session,
  { name, attempt, standing = false }: { readonly name: string; readonly attempt: string; readonly standing?: boolean },
): Promise<Instance> {
  const instance = await attempting(attempt, () => client.get('instance', name, { project }), {
    NotFound: seeInstances,
  });
  const { metadata, status } = instance;
  if (status.phase === 'Running') return instance;
  if (status.phase === 'Suspended' && standing) return instance;
  if (status.phase === 'Suspended')
    throw new CommandError(errorCodes.Conflict.exitCode, `instance "${metadata.name}" is suspended`, {
      advice: `resume it first: berth resume ${metadata.name}`,
    });
  assertNotEnded(instance);
  throw new CommandError(
    errorCodes.Conflict.exitCode,
    `instance "${metadata.name}" does not run: it is ${status.phase}`,
    {
      advice: `"berth explain ${metadata.name}" says why`,
    },
  );
}
