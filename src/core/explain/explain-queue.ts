// The position of a waiting instance in the queue, and which instances are before it.

import type { QueueExplanation } from '../../api/explanation.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { queueOf } from '../queue/queue.ts';
import { sharesOf } from '../queue/shares.ts';
import { keys } from '../state/keys.ts';
import type { Snapshot } from '../state/snapshot.ts';

/** For a longer queue the order is not computed for a single request: about 10 ms. */
const orderedMax = 5_000;
const namedMax = 3;

export function explainQueue(snapshot: Snapshot, { metadata }: Instance, nowMs: number): QueueExplanation {
  const queue = queueOf(snapshot);
  const waiting = queue.length;
  const projectShare = sharesOf(snapshot).of(metadata.project);
  if (waiting > orderedMax) return { waiting, ahead: [], projectShare };
  const order = queue.inOrder(nowMs);
  const own = keys.instance(metadata.project, metadata.name);
  const at = order.findIndex(({ key }) => key === own);
  if (at < 0) return { waiting, ahead: [], projectShare };
  const ahead = order.slice(0, Math.min(at, namedMax)).map(({ key }) => key.slice(key.indexOf('/') + 1));
  return { position: at + 1, waiting, ahead, projectShare };
}
