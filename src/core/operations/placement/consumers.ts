// Consumers as the Placement API shows them: those of its clients, and our instances, tasks and volumes.

import type { Amounts } from '../../../api/resources/metadata.ts';
import type { Allocation } from '../../state/records.ts';
import type { Snapshot } from '../../state/snapshot.ts';
import { uuidOf } from '../../state/views/placement-index.ts';
import { outsideConsumerOf } from './allocations.ts';

export interface ShownConsumer {
  readonly uuid: string;
  readonly project: string;
  readonly user: string;
  /** Undefined: unknown. */
  readonly type: string | undefined;
  readonly generation: number;
  readonly changedAtMs: number | undefined;
  readonly allocations: readonly { readonly providerId: string; readonly amounts: Amounts }[];
}

/** The user that our own consumers are shown with. */
const ourUser = 'berth';

/** By the id of the ledger; undefined while it holds nothing. */
export function shownConsumer(snapshot: Snapshot, id: string): ShownConsumer | undefined {
  const held = snapshot.allocationsOfConsumer(id);
  const [first] = held;
  if (!first) return undefined;
  const allocations = held.flatMap(({ value }) =>
    Object.entries(value.amounts)
      .filter(([, amounts]) => Object.keys(amounts).length > 0)
      .map(([providerId, amounts]) => ({ providerId, amounts })),
  );
  const { consumer } = first.value;
  if (consumer.kind !== 'outside') {
    const generation = held.reduce((most, { value }) => Math.max(most, value.consumer.incarnation), 0);
    const { project } = consumer;
    return {
      uuid: uuidOf(id),
      ...{ project, user: ourUser, type: typeOf(consumer.kind), generation, changedAtMs: undefined, allocations },
    };
  }
  const known = outsideConsumerOf(snapshot, id);
  return {
    uuid: id,
    project: known?.project ?? consumer.project,
    user: known?.user ?? '',
    type: known?.type,
    generation: known?.generation ?? 0,
    changedAtMs: known?.changedAtMs,
    allocations,
  };
}

function typeOf(kind: Allocation['consumer']['kind']): string {
  return kind === undefined ? 'INSTANCE' : kind.toUpperCase();
}
