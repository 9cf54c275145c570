// Waits for a requested change by watching, shows its progress, and fails when it cannot happen any more.

import type { Kind, ResourceByKind } from '../../api/resources/index.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { isToRestart } from '../../api/instances/restart-rule.ts';
import type { Cli } from '../cli.ts';
import { CommandError, exitCodes, Interrupted } from '../exit-codes.ts';
import { follow } from '../print/follow.ts';
import { isReady, reasonOf } from './instance-view.ts';
import { startProgress } from '../print/progress.ts';
import type { Session } from '../session.ts';
import { seconds } from '../options/units.ts';

/** `undefined`: the resource is gone. */
export type Judge<K extends Kind, T> = (resource: ResourceByKind[K] | undefined) => Verdict<T>;
type Verdict<T> =
  | { readonly done: T }
  | { readonly waiting: string }
  | { readonly failed: string; readonly advice?: string };

interface WaitOptions<K extends Kind, T> {
  readonly id: string;
  readonly name: string;
  readonly judge: Judge<K, T>;
  readonly timeoutMs?: number | undefined;
  /** Added to the message when Ctrl-C ends the wait. */
  readonly interruptedAdvice?: string;
}

export function waitForInstance<T>(
  cli: Cli,
  session: Session,
  options: WaitOptions<'instance', T> & { readonly adviceAfter?: () => string },
): Promise<T> {
  const { name } = options;
  const adviceAfter = (): string => `it continues; see: berth ps --watch, berth explain ${name}, berth logs ${name}`;
  return waitForResource(cli, session, { kind: 'instance', adviceAfter, ...options });
}

/** `adviceAfter`: advice after a timeout. */
export async function waitForResource<K extends Kind, T>(
  cli: Cli,
  { client, project }: Session,
  options: WaitOptions<K, T> & { readonly kind: K; readonly adviceAfter: () => string },
): Promise<T> {
  const { kind, id, name, judge, timeoutMs } = options;
  const interruption = cli.interruption();
  const overdue = new AbortController();
  const timer = timeoutMs === undefined ? undefined : cli.clock.setTimer(timeoutMs, () => overdue.abort());
  const progress = startProgress(cli);
  const ends = AbortSignal.any([interruption, overdue.signal]);
  let last = '';
  try {
    for await (const change of follow(cli, client, kind, { project }, ends)) {
      if (change.type === 'lost') {
        progress.update(`${name}: no answer from the server; trying again`);
        continue;
      }
      if (change.type === 'put' && change.resource.metadata.id !== id) continue;
      if (change.type === 'delete' && (change.name !== name || change.project !== project)) continue;
      const resource =
        change.type === 'put'
          ? change.resource
          : change.type === 'sync'
            ? change.items.find(({ metadata }) => metadata.id === id)
            : undefined;
      const verdict = judge(resource);
      if ('done' in verdict) return verdict.done;
      if ('failed' in verdict) throw new CommandError(exitCodes.badOutcome, verdict.failed, { advice: verdict.advice });
      last = verdict.waiting;
      progress.update(`${name}: ${verdict.waiting}`);
    }
    throw new Interrupted();
  } catch (error) {
    if (!(error instanceof Interrupted)) throw error;
    if (overdue.signal.aborted && !interruption.aborted) {
      throw new CommandError(exitCodes.timedOut, `"${name}" was not done after ${seconds(timeoutMs ?? 0)}: ${last}`, {
        advice: options.adviceAfter(),
      });
    }
    progress.end();
    if (options.interruptedAdvice !== undefined) cli.stderr.write(`${options.interruptedAdvice}\n`);
    throw error;
  } finally {
    progress.end();
    timer?.cancel();
  }
}

/** Done when the guest itself has reported the end of its boot. */
export function untilReady(name: string): Judge<'instance', Instance> {
  return (instance) => {
    if (!instance) return { failed: `instance "${name}" was removed before it was ready` };
    if (isReady(instance)) return { done: instance };
    const { status } = instance;
    const why = reasonOf(instance);
    switch (status.phase) {
      case 'Failed':
        // The restart controller places it again.
        if (isToRestart(instance)) return { waiting: `Failed, will be restarted: ${why}` };
        return { failed: `instance "${name}" failed: ${why}`, advice: `berth logs ${name}, berth events ${name}` };
      case 'Exited':
        if (isToRestart(instance)) return { waiting: `Exited, will be restarted: ${why}` };
        return { failed: `instance "${name}" exited before it was ready: ${why}`, advice: `berth logs ${name}` };
      case 'Deleting':
        return { failed: `instance "${name}" is being removed` };
      default:
        return { waiting: why === '' ? status.phase : `${status.phase}  ${why}` };
    }
  };
}

export function untilStopped(name: string): Judge<'instance', Instance> {
  return (instance) => {
    if (!instance) return { failed: `instance "${name}" was removed` };
    const { phase } = instance.status;
    return phase === 'Stopped' || phase === 'Exited' || phase === 'Failed' ? { done: instance } : { waiting: phase };
  };
}

export function untilSuspended(name: string): Judge<'instance', Instance> {
  return untilUp(name, { phase: 'Suspended', word: 'suspended' });
}

/** With its memory on disk. */
export function untilSaved(name: string): Judge<'instance', Instance> {
  const judge = untilUp(name, { phase: 'Suspended', word: 'suspended to disk' });
  return (instance) => {
    const told = judge(instance);
    if (!('done' in told) || told.done.status.guest?.saved === true) return told;
    return { waiting: `${told.done.status.phase}  ${reasonOf(told.done)}` };
  };
}

/** Whether or not it has booted. */
export function untilRunning(name: string): Judge<'instance', Instance> {
  return untilUp(name, { phase: 'Running', word: 'resumed' });
}

function untilUp(
  name: string,
  { phase: wanted, word }: { readonly phase: 'Running' | 'Suspended'; readonly word: string },
): Judge<'instance', Instance> {
  return (instance) => {
    if (!instance) return { failed: `instance "${name}" was removed before it was ${word}` };
    const { phase } = instance.status;
    const why = reasonOf(instance);
    if (phase === wanted) return { done: instance };
    if (phase === 'Deleting') return { failed: `instance "${name}" is being removed` };
    if ((phase === 'Exited' || phase === 'Failed') && !isToRestart(instance))
      return { failed: `instance "${name}" ended before it was ${word}: ${why}`, advice: `berth events ${name}` };
    return { waiting: why === '' ? phase : `${phase}  ${why}` };
  };
}

export const untilGone: Judge<'instance', 'gone'> = (instance) =>
  instance ? { waiting: instance.status.phase } : { done: 'gone' };
