// A host that was drained stays closed until its drain is cancelled, however it is paused or resumed. `berth host resume`
// therefore opens it, too. It never ends a drain that is under way.

import type { UserClient } from '../../../api/client/user-client.ts';
import { ApiError } from '../../../api/errors.ts';
import type { Host } from '../../../api/resources/host.ts';
import { conditionOf } from '../../instances/instance-view.ts';

export async function openAfterDrain(client: UserClient, { metadata: { name }, status }: Host): Promise<void> {
  if (conditionOf(status.conditions, 'Draining')?.status !== 'True') return;
  const { phase } = await client.showDrain(name).catch((error: unknown) => {
    if (error instanceof ApiError && error.code === 'NotFound') return { phase: 'Drained' }; // lost by a restore
    throw error;
  });
  if (phase === 'Draining')
    throw new ApiError(
      'Conflict',
      `it is being drained; "berth host drain ${name} --cancel" ends the drain and opens it`,
    );
  await client.cancelDrain(name);
}
