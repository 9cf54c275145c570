// One run of the containers of one guest, from their start or their adoption to the end of the last: looks when something has happened,
// ends all when one has failed, takes in what they write. It ends nothing that is not in its list.

import { type Clock, sleep, type Timer } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { connectTcp } from '../guest-life/ways-in/connect-tcp.ts';
import type { BootMarks } from '../guest-life/boot-marks.ts';
import type { Run, RunEnd, Trouble } from '../guest-life/hypervisor.ts';
import { containerName } from './container-config.ts';
import type { Engine, EngineContainer } from './engine.ts';
import type { EngineWatch } from './engine-watch.ts';
import { type GroupLog, followGroup } from './group-log.ts';
import { type GroupState, groupState, runs, type SeenContainer } from './group-state.ts';

export interface GroupRunOptions {
  readonly engine: Engine;
  readonly watch: EngineWatch;
  readonly clock: Clock;
  readonly log: Logger;
  readonly instanceId: string;
  /** The guest's. */
  readonly directory: string;
  /** Of the containers, the first the one with the network. */
  readonly names: readonly string[];
  /** They were asked to end before this run looked after them. */
  readonly stopping: boolean;
  /** They were ready in this run of theirs: of those that stand still it cannot be seen. */
  readonly ready: boolean;
  /** They stood still when they were last looked at. */
  readonly suspended: boolean;
  /** Makes a health check that nobody else makes. */
  readonly checkHealth: (container: string) => Promise<void>;
  /** Let go of: with the end of what it was still writing. */
  readonly onDetached: (written: Promise<void>) => void;
}

const lookAgainMs = 1000; // after one that failed
const healthMs = 1000; // until the first good check, as often as systemd's timers may
const lastGraceMs = 10_000; // for those that another's failure ends
const endTimeoutMs = 60_000; // SIGKILL works at once, but for a disk that hangs

export function runGroup(options: GroupRunOptions): Run {
  const { engine, clock, log, instanceId, directory, names } = options;
  const containers = names.map((name) => ({ name, container: containerName(instanceId, name) }));
  const ended = Promise.withResolvers<RunEnd>();
  const over = new AbortController();
  const lines: GroupLog = followGroup({ engine, clock, log, directory, containers });
  const markListeners: ((marks: BootMarks) => void)[] = [];
  const troubleListeners: ((trouble: Trouble | undefined) => void)[] = [];
  let stopping = options.stopping;
  /** What all of them are to be: somebody may hold or let go one of several past us. */
  let suspended = options.suspended;
  /** They are being held or let go, one after the other: what is seen of some of them meanwhile is nobody else's doing. */
  let changing = false;
  const suspensionListeners: ((suspended: boolean) => void)[] = [];
  let marks: BootMarks = { ready: options.ready };
  let trouble: Trouble | undefined;
  let failing: Promise<void> | undefined;
  /** Of the one that failed first: how the others end that are ended for it says nothing. */
  let blame: RunEnd['verdict'];
  let looking: Promise<GroupState> | undefined;
  let again = false;
  let retry: Timer | undefined;

  const inspect = async (): Promise<SeenContainer[]> =>
    Promise.all(
      containers.map(async ({ name, container }) => ({
        name,
        container: await engine.inspect(container),
      })),
    );

  const look = async (): Promise<GroupState> => {
    for (;;) {
      again = false;
      const seen = await inspect();
      for (const each of seen) lines.seen(each.name, runs(each));
      const state = groupState(seen, stopping);
      await act(state);
      if (!again || over.signal.aborted) return state;
    }
  };

  const act = async (state: GroupState): Promise<void> => {
    if (over.signal.aborted) return;
    switch (state.is) {
      case 'running':
        tell(state);
        return keepTogether(state);
      case 'failing':
        blame ??= state.verdict;
        failing ??= endOthers(state);
        return;
      case 'ended': {
        const verdict = blame ?? state.verdict;
        over.abort();
        forget();
        await lines.finish();
        if (verdict.state === 'exited') mark({ ...marks, ready: true }); // it was, perhaps too shortly to be seen
        ended.resolve({ cause: 'other', detail: verdict.reason.message, verdict });
      }
    }
  };

  const tell = (state: GroupState & { is: 'running' }): void => {
    const { address } = state;
    const ready = marks.ready || state.ready;
    mark({ ready, ...(address === undefined ? {} : { address }) });
    if (state.trouble?.message !== trouble?.message) {
      trouble = state.trouble;
      for (const listener of troubleListeners) listener(trouble);
    }
    if (state.unchecked.length > 0) checkLater(state.unchecked);
  };

  /** All stand still or none does: what somebody did to all of them is told, what was done to some of them is undone. */
  const keepTogether = async ({ paused, going }: GroupState & { is: 'running' }): Promise<void> => {
    if (paused.length === 0 || going.length === 0) return tellSuspended(paused.length > 0);
    if (changing) return;
    const [verb, whom] = suspended && !stopping ? (['pause', going] as const) : (['unpause', paused] as const);
    for (const name of whom) await engine[verb](containerName(instanceId, name)); // the engine tells when it is done
  };

  const tellSuspended = (seen: boolean): void => {
    suspended = seen;
    for (const listener of suspensionListeners) listener(seen);
  };

  const setSuspended = async (wanted: boolean): Promise<void> => {
    const before = await lookNow();
    if (before.is !== 'running')
      throw new DriverError('NotPossible', `the containers of ${instanceId} do not run any more`);
    suspended = wanted;
    const [verb, whom] = wanted ? (['pause', before.going] as const) : (['unpause', before.paused] as const);
    changing = true;
    try {
      for (const name of whom) await engine[verb](containerName(instanceId, name));
      const after = await lookNow();
      if (after.is === 'running' && (wanted ? after.going : after.paused).length > 0)
        throw new DriverError('NotPossible', `the containers of ${instanceId} do not do as they were told: to ${verb}`);
    } catch (error) {
      lookSoon(); // some of them may do as they were told, and others not
      throw error;
    } finally {
      changing = false;
    }
  };

  const mark = (seen: BootMarks): void => {
    if (seen.ready === marks.ready && seen.address === marks.address) return;
    marks = seen;
    for (const listener of markListeners) listener(marks);
  };

  let checking: Promise<void> | undefined;
  const checkLater = (unchecked: readonly string[]): void => {
    checking ??= (async () => {
      await sleep(clock, healthMs, over.signal);
      if (over.signal.aborted) return;
      for (const name of unchecked) await options.checkHealth(containerName(instanceId, name));
    })()
      .catch((error: unknown) => log.debug('cannot check the health of a container', { error: describeError(error) }))
      .finally(() => {
        checking = undefined;
        lookSoon();
      });
  };

  /** One has failed: the others are asked to end, and then made to. */
  const endOthers = async ({ verdict, left }: GroupState & { is: 'failing' }): Promise<void> => {
    log.info('a container failed; the others of its guest are ended', { left, reason: verdict.reason.message });
    await signal('stop').catch((error: unknown) => log.warn('cannot end containers', { error: describeError(error) }));
    await sleep(clock, lastGraceMs, over.signal);
    if (over.signal.aborted) return;
    await end().catch((error: unknown) => log.error('containers do not end', { error: describeError(error) }));
  };

  /** To all that run: what each of them takes for a wish to end, or the end itself. */
  const signal = async (which: 'stop' | 'kill'): Promise<void> => {
    const seen = await inspect();
    // One that stands still would neither hear it nor end.
    for (const { name, container } of seen)
      if (container?.State.Status === 'paused') await engine.unpause(containerName(instanceId, name));
    await Promise.all(
      seen
        .filter(runs)
        .map(({ name, container }) =>
          engine.kill(containerName(instanceId, name), which === 'kill' ? 'SIGKILL' : stopSignal(container)),
        ),
    );
  };

  const end = async (): Promise<void> => {
    const deadlineMs = clock.monotonicMs() + endTimeoutMs;
    for (;;) {
      try {
        await signal('kill');
        if ((await lookNow()).is === 'ended') return;
      } catch (error) {
        if (clock.monotonicMs() >= deadlineMs)
          throw new DriverError(
            'ContainerEngineFailed',
            `cannot end the containers of ${instanceId}: ${describeError(error)}`,
          );
      }
      if (over.signal.aborted) return void (await ended.promise);
      if (clock.monotonicMs() >= deadlineMs)
        throw new DriverError('ContainerEngineFailed', `the containers of ${instanceId} do not end`);
      await sleep(clock, endPollMs, over.signal);
    }
  };

  const lookNow = (): Promise<GroupState> => {
    again = true;
    looking ??= look().finally(() => {
      looking = undefined;
    });
    return looking;
  };
  const lookSoon = (): void => {
    if (over.signal.aborted) return;
    lookNow().catch((error: unknown) => {
      log.debug('cannot look at containers; looking again', { error: describeError(error) });
      retry?.cancel(); // several may have waited for this one look
      retry = clock.setTimer(lookAgainMs, lookSoon, { background: true });
    });
  };
  const forget = options.watch.on(instanceId, lookSoon);
  const connected = lookNow().then(
    () => {},
    () => lookSoon(), // what cannot be seen now is watched all the same
  );

  return {
    process: undefined,
    connected,
    ended: ended.promise,
    onTrouble(listener) {
      troubleListeners.push(listener);
      listener(trouble);
    },
    onMarks(listener) {
      markListeners.push(listener);
      if (marks.ready || marks.address !== undefined) listener(marks);
    },
    suspension: {
      suspend: () => setSuspended(true),
      resume: () => setSuspended(false),
      onChange(listener) {
        suspensionListeners.push(listener);
        listener(suspended);
      },
    },
    dial(port) {
      const { address: host } = marks;
      if (host === undefined) throw new DriverError('NotPossible', 'the containers have no address that is known');
      return connectTcp({ host, port }, `port ${port} of the containers`);
    },
    alive: () => Promise.resolve(true), // the engine has said so; one that ended since has run
    async powerDown() {
      stopping = true;
      await signal('stop');
    },
    async end() {
      stopping = true;
      if (!over.signal.aborted) await end();
      await ended.promise;
    },
    detach() {
      over.abort();
      forget();
      ended.resolve({ cause: 'detached', detail: 'nobody looks any more' });
      options.onDetached(lines.stop());
    },
  };
}

const endPollMs = 50;

/** As Docker names it, podman numbers it. */
function stopSignal(container: EngineContainer | null): string {
  const said = container?.Config.StopSignal;
  return said === undefined || said === null || said === '' || said === 0 ? 'SIGTERM' : String(said);
}
