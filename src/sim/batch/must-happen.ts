// What must have happened at least once in a large batch: each fault, each kind of bad weather, each unusual place. A batch in which one
// of them never happened has not tested it, and fails.

import { buggifyPlaces } from '../../base/buggify.ts';
import { faultKinds } from '../faults/registry.ts';
import { kindOf } from '../unusual.ts';

export const mustHappen: readonly string[] = [
  ...faultKinds,
  ...buggifyPlaces.map(kindOf),
  'partition-both',
  'partition-to-server',
  'partition-from-server',
  'partition-loss',
  'network-requestLost',
  'network-answerLost',
  'network-duplicate',
  'network-slow',
  'network-streamCut',
  'network-streamStalled',
  'store-unavailable',
  'store-unknown',
  'store-slow',
  'store-watchBroken',
  'store-parted',
  'store-crash-kept',
  'store-crash-lost',
  'disk-failed',
  'disk-lost-unsynced',
  'clock-rate',
  'stays-dead-server',
  'stays-dead-host',
  'backed-up',
  'restored',
  'restored-in-storm',
  'leader-changed',
  'stale-leader-refused',
  'rogue-refused',
  'call-repeated',
  'tenant-running',
  'tenant-stopped',
  'tenant-suspended',
  'guest-suspended',
  'watched',
  'watch-compacted',
  'job-created',
  'request-valid',
  'request-invalid',
  'request-conflicting',
  'broker-restarted',
  'broker-confirm-late',
  'broker-confirm-lost',
];

/** Rare events: only a batch of a thousand seeds must have seen them. */
export const mustHappenInMany: readonly string[] = [
  'restore-broken-off',
  'restored-store-crash',
  'restored-agent-crash',
  'restored-server-crash',
  'broker-delivery-lost',
  'broker-acknowledgement-lost',
  'broker-unrouted',
];
