// What QEMU is asked of how it stands.

import { isRecord } from '../../../base/is-record.ts';
import type { Standing } from '../guest-life/standing.ts';
import type { ProcessIdentity } from '../../host/processes.ts';
import type { Qmp } from './qmp.ts';
import { standingOf } from './run-states.ts';

async function askRunState(session: Qmp): Promise<string> {
  const said = await session.execute('query-status');
  return isRecord(said) && typeof said['status'] === 'string' ? said['status'] : 'none';
}

export const askStanding = async (session: Qmp): Promise<Standing> => standingOf(await askRunState(session));

/** For people. Never throws. */
export async function describeQemu({ pid }: ProcessIdentity, session: Qmp | undefined): Promise<string> {
  const about = `QEMU (pid ${pid})`;
  if (session === undefined) return `${about} does not answer`;
  return askRunState(session).then(
    (runState) => `${about} is in the run state "${runState}"`,
    () => `${about} does not answer`, // whatever kept it from that
  );
}

/** Whether it is for want of room that a disk cannot be used. */
export async function hasNoRoom(session: Qmp): Promise<boolean> {
  const disks = await session.execute('query-block');
  return Array.isArray(disks) && disks.some((disk: unknown) => isRecord(disk) && disk['io-status'] === 'nospace');
}
