// Which rules for the loss of a host an instance may have. A rule that can never be carried out is refused at once.

import { ApiError } from '../../../api/errors.ts';
import type { InstanceSpec } from '../../../api/resources/instance.ts';
import type { Policy } from '../../state/context.ts';

export function assertHostLoss({ onHostLoss, selfStop, exclusive, volumes, run }: InstanceSpec, policy: Policy): void {
  if (selfStop === true && !exclusive)
    throw new ApiError('InvalidRequest', 'selfStop is for exclusive instances: no other waits for the proof', {
      field: 'spec.selfStop',
    });
  if (onHostLoss !== 'replace') return;
  const refusal = volumes
    ? 'a replacement on another host cannot have its volumes, which are on the lost host; "wait" keeps them'
    : run
      ? 'its job starts another attempt when its host is lost'
      : exclusive && selfStop !== true && policy.fencing !== true
        ? 'an exclusive instance is replaced only with a proof that its first copy has ended: set selfStop as well, or configure fencing on the server'
        : undefined;
  if (refusal !== undefined)
    throw new ApiError('InvalidRequest', `onHostLoss cannot be "replace": ${refusal}`, { field: 'spec.onHostLoss' });
}
