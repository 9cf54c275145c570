// The status of an instance that leaves its host for good: without what belonged to its guest there. The next guest is made of the
// amounts in the spec, so a resize that was still to be done is done by it.

import type { InstanceStatus } from '../../api/resources/instance.ts';

type Unplaced = Omit<InstanceStatus, 'host' | 'guest' | 'report' | 'assigned'>;

/** Keeps the order of the last resize: the host of the next guest knows by it that there is nothing to do. */
export function unplacedStatus(status: InstanceStatus): Unplaced {
  const { host: _host, guest: _guest, report: _report, assigned: _assigned, ...kept } = status;
  return kept.resize?.pending ? { ...kept, resize: { ...kept.resize, pending: false } } : kept;
}
