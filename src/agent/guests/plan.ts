// What to do about one instance on this host: desired x observed -> action, one total table. Pure; it never looks anything up.
//
//   observed ►   nothing         older   preparing  running  suspended  stopped  exited   failed   newer          damaged
//   wanted ▼
//   running      create          remove  create     none     resume     start    none     none     none           none
//   suspended    create          remove  create     suspend  none       start    none     none     none           none
//   stopped      report-stopped  remove  remove     stop     stop       none     none     none     none           none
//   absent       report-absent   remove  remove     remove   remove     remove   remove   remove   report-absent  remove
//   kept         report-absent   absent* none       none     none       none     none     none     report-absent  none
//   incoming     receive         remove  remove     none     receive    none     none     none     none           none
//   (unassigned) none            report-unknown, whatever it is
//
// absent*: report-absent. older, newer: a guest of another incarnation than the wanted one; its state does not matter. The rest is the same incarnation.
//
// - A guest that exited or failed is over: only the control plane decides on a restart, and then sends a new incarnation; or it
//   orders this one to start again from its own disk, and until then its guest counts as stopped.
// - A `preparing` guest is one whose creation was interrupted, since no step works on it now: it is finished, or cleared away.
// - An older guest goes before anything else: two incarnations of one instance never run side by side.
// - A newer guest means that the assignment is stale. It is not touched; and nothing of a stale `absent` one is left.
// - Which incarnation a damaged guest is, and whether it runs, is unknown. It is all that is left of the instance's
//   disk, so it goes only when nothing of the instance is wanted; until then it is shown as running while it may run, and else as failed.
// - A guest that was suspended by other means is resumed, and one that was resumed by other means is suspended: its owner decides.
// - Of what is only to be kept nothing is begun or ended; an older guest stays, too, and the wanted one is reported absent.
// - Where the table says `none` or `start` of the wanted guest, and it has other volumes than it is to have, that comes first:
//   `set-volumes`. A guest that ended lets go of volumes too; of what is only kept nothing is taken, and of a damaged guest nothing is known.
// - A guest that runs and is dead, as its checks say, is stopped where it is to run; then it counts as failed.
// - A guest that is to be resized is stopped where it is to run, then resized, then started. A suspended one keeps its memory until it is to run.
// - A guest that is to be suspended to disk is saved where the table says `suspend`, and where it is suspended in memory. One that is saved stays so
//   when that is not asked for any more: it is resumed from there.
// - A suspended incoming guest has arrived in a live move: this is reported again.
// - A guest that was handed over in a live move is paused until the move ends. If the move failed, the guest is resumed before anything else:
//   `take-back`.
// - A guest without an assignment is never touched, only reported: an empty ledger destroys nothing.

import type { Assignment, GuestState } from '../../api/agent-protocol.ts';

export type Action =
  | 'none'
  | 'create'
  /** It moves to this host: fetch its files, and start nothing. */
  | 'receive'
  | 'start'
  | 'suspend'
  /** Suspend it, write its memory to disk, and end its process. */
  | 'save'
  | 'resume'
  | 'stop'
  | 'remove'
  /** It is here as wanted, but for its volumes. */
  | 'set-volumes'
  /** It is here and stopped, with other amounts than it is to have. */
  | 'resize'
  /** It is paused for a live move that has failed. */
  | 'take-back'
  /** Nothing runs, as wanted, and there is nothing to stop. */
  | 'report-stopped'
  /** Nothing of this incarnation is left here. */
  | 'report-absent'
  | 'report-unknown';

export type Desired = Pick<Assignment, 'want' | 'incarnation' | 'suspendTo'>;

export interface Observed {
  readonly incarnation: number;
  readonly state: GuestState;
  readonly damaged?: boolean;
  /** It has other volumes than it is to have, or has them otherwise. */
  readonly otherVolumes?: boolean;
  /** It is to be resized, which needs a stop. */
  readonly otherSize?: boolean;
  /** It is paused for a live move; `over`: the move has failed. */
  readonly handedOver?: 'under-way' | 'over';
  /** It is suspended, and its memory is on disk. */
  readonly saved?: boolean;
  /** It runs, and its checks say that it is to be ended. */
  readonly dead?: boolean;
}

export function planFor(desired: Desired | undefined, observed: Observed | undefined): Action {
  if (desired === undefined) return observed === undefined ? 'none' : 'report-unknown';
  const column = columnOf(desired, observed);
  const handedOver = observed?.incarnation === desired.incarnation ? observed.handedOver : undefined;
  if (handedOver !== undefined && desired.want !== 'absent') {
    const isOver = handedOver === 'over' && desired.want !== 'kept' && desired.want !== 'incoming';
    return isOver ? 'take-back' : 'none';
  }
  if (observed?.dead === true && (desired.want === 'running' || desired.want === 'suspended')) return 'stop';
  const action = isToSave(desired, column, observed) ? 'save' : table[desired.want][column];
  const here = column !== 'nothing' && column !== 'older' && column !== 'newer' && column !== 'damaged';
  if (here && observed?.otherSize === true && (desired.want === 'running' || desired.want === 'stopped')) {
    if (column === 'stopped') return 'resize';
    if (column === 'running' || column === 'suspended') return 'stop';
  }
  const mayChange =
    desired.want !== 'kept' && desired.want !== 'incoming' && here && (action === 'none' || action === 'start');
  return mayChange && observed?.otherVolumes === true ? 'set-volumes' : action;
}

function isToSave({ want, suspendTo }: Desired, column: Column, observed: Observed | undefined): boolean {
  if (want !== 'suspended' || suspendTo !== 'disk') return false;
  return column === 'running' || (column === 'suspended' && observed?.saved !== true);
}

type Column = 'nothing' | 'older' | GuestState | 'newer' | 'damaged';

// biome-ignore format: a table
const table: Readonly<Record<Desired['want'], Readonly<Record<Column, Action>>>> = {
  running:   { nothing: 'create',         older: 'remove', preparing: 'create', running: 'none',    suspended: 'resume', stopped: 'start',  exited: 'none',   failed: 'none',   newer: 'none',          damaged: 'none' },
  suspended: { nothing: 'create',         older: 'remove', preparing: 'create', running: 'suspend', suspended: 'none',   stopped: 'start',  exited: 'none',   failed: 'none',   newer: 'none',          damaged: 'none' },
  stopped:   { nothing: 'report-stopped', older: 'remove', preparing: 'remove', running: 'stop',    suspended: 'stop',   stopped: 'none',   exited: 'none',   failed: 'none',   newer: 'none',          damaged: 'none' },
  kept:      { nothing: 'report-absent',  older: 'report-absent', preparing: 'none', running: 'none', suspended: 'none', stopped: 'none',   exited: 'none',   failed: 'none',   newer: 'report-absent', damaged: 'none' },
  incoming:  { nothing: 'receive',        older: 'remove', preparing: 'remove', running: 'none',    suspended: 'receive', stopped: 'none',  exited: 'none',   failed: 'none',   newer: 'none',          damaged: 'none' },
  absent:    { nothing: 'report-absent',  older: 'remove', preparing: 'remove', running: 'remove',  suspended: 'remove', stopped: 'remove', exited: 'remove', failed: 'remove', newer: 'report-absent', damaged: 'remove' },
};

function columnOf(desired: Desired, observed: Observed | undefined): Column {
  if (observed === undefined) return 'nothing';
  if (observed.damaged === true) return 'damaged';
  if (observed.incarnation < desired.incarnation) return 'older';
  if (observed.incarnation > desired.incarnation) return 'newer';
  return observed.state;
}
