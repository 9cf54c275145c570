// How an instance ended, for commands that need its guest: all give the same reason. It changes nothing.

import { isToRestart } from '../../api/instances/restart-rule.ts';
import { ApiError, errorCodes } from '../../api/errors.ts';
import { type Instance, isToBeOn } from '../../api/resources/instance.ts';
import { isRecord } from '../../base/is-record.ts';
import type { Cli } from '../cli.ts';
import { CommandError } from '../exit-codes.ts';
import { follow } from '../print/follow.ts';
import { conditionOf, reasonOf } from '../instances/instance-view.ts';
import type { Session } from '../session.ts';

interface End {
  readonly message: string;
  readonly advice: string;
}

/** Undefined: its guest runs, or will start. */
export function endOf(instance: Instance): End | undefined {
  const { metadata, spec, status } = instance;
  const { name } = metadata;
  switch (status.phase) {
    case 'Failed': {
      const again = isToRestart(instance) ? ' and will be restarted' : '';
      return {
        message: because(`instance "${name}" has failed${again}`, reasonOf(instance)),
        advice: `see: berth logs ${name}, berth events ${name}`,
      };
    }
    case 'Exited':
      return {
        message: because(
          `instance "${name}" has ended`,
          conditionOf(status.conditions, 'Running')?.message ?? reasonOf(instance),
        ),
        advice: `see: berth logs ${name}, berth events ${name}`,
      };
    case 'Stopped':
      return {
        message: because(`instance "${name}" is stopped`, reasonOf(instance)),
        advice: isToBeOn(spec) ? `"berth explain ${name}" says why` : `start it: berth start ${name}`,
      };
    case 'Deleting':
      return { message: `instance "${name}" is being removed`, advice: '"berth ps" shows the instances' };
    default:
      return undefined;
  }
}

const because = (what: string, why: string): string => (why === '' ? what : `${what}: ${why}`);

/** Throws `CommandError` with how the instance ended, if it did; `exitCode` is then the command's. */
export function assertNotEnded(instance: Instance, exitCode: number = errorCodes.Conflict.exitCode): void {
  const end = endOf(instance);
  if (end !== undefined) throw new CommandError(exitCode, end.message, { advice: end.advice });
}

/**
 * Runs `work`. When it is refused because the instance has ended, that becomes the error: a host only knows that it has
 * no such guest. Other errors stay.
 */
export async function orItsEnd<T>(session: Session, name: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const told = error instanceof ApiError && isRecord(error.details) && error.details['reason'] !== undefined;
    if (error instanceof ApiError && !told && refusedByEnd.some((code) => code === error.code)) {
      const instance = await lookUp(session, name);
      if (instance !== undefined) assertNotEnded(instance);
    }
    throw error;
  }
}

const refusedByEnd = ['NotFound', 'Conflict', 'HostUnreachable'] as const;

/** Without a response the caller has its own error, or nothing to add. */
async function lookUp({ client, project }: Session, name: string): Promise<Instance | undefined> {
  return client.get('instance', name, { project }).catch(() => undefined);
}

/** A guest's end reaches its host's log before the control plane: reports take much less than this. */
const reportedWithinMs = 5_000;

/**
 * Prints how the instance ended to standard error, after its console. `ended`: the console ended while it was followed,
 * so the control plane will know soon.
 */
export async function tellEnd(
  cli: Cli,
  session: Session,
  { name, ended }: { readonly name: string; readonly ended: boolean },
): Promise<void> {
  const instance = await lookUp(session, name);
  if (instance === undefined) return;
  const end = endOf(instance) ?? (ended ? await awaitEnd(cli, session, instance) : undefined);
  if (end !== undefined) cli.stderr.write(`berth: ${end.message}\n`);
}

/** Undefined: it is already starting again, is gone, or has not ended in time. */
async function awaitEnd(cli: Cli, { client, project }: Session, before: Instance): Promise<End | undefined> {
  const late = new AbortController();
  const timer = cli.clock.setTimer(reportedWithinMs, () => late.abort());
  const signal = AbortSignal.any([cli.interruption(), late.signal]);
  try {
    for await (const change of follow(cli, client, 'instance', { project }, signal)) {
      const all = change.type === 'put' ? [change.resource] : change.type === 'sync' ? change.items : [];
      const now = all.find(({ metadata }) => metadata.id === before.metadata.id);
      if (change.type === 'sync' && now === undefined) return undefined;
      if (change.type === 'delete' && change.name === before.metadata.name) return undefined;
      if (now === undefined) continue;
      if (now.status.incarnation !== before.status.incarnation) return undefined;
      const end = endOf(now);
      if (end !== undefined) return end;
    }
  } catch {
    // Late, interrupted or no response: the console was printed, and there is nothing to add.
  } finally {
    timer.cancel();
    late.abort();
  }
  return undefined;
}
