// The state of a guest from the states of its containers: pure. The guest runs until all have ended; a failed one ends all.
//
//   container:  created ─► running ─► exited (code)
//   guest:      running while one container runs ─► exited, when all ended with 0
//                                               └─► failing, as soon as one failed ─► failed, when the others have ended too

import type { RunEnd, Trouble } from '../guest-life/hypervisor.ts';
import type { ImageHealth } from '../access.ts';
import type { EngineContainer } from './engine-answers.ts';

export interface SeenContainer {
  readonly name: string;
  /** Null: it does not exist any more. */
  readonly container: EngineContainer | null;
}

export type GroupState =
  | {
      readonly is: 'running';
      /** All run, and all with a health check are healthy. */
      readonly ready: boolean;
      readonly address?: string;
      readonly trouble?: Trouble;
      /** The running containers that are paused, and those that are not. */
      readonly paused: readonly string[];
      readonly going: readonly string[];
      /** Containers without a good health check so far. */
      readonly unchecked: readonly string[];
    }
  /** The containers in `left` still run and must be ended. */
  | { readonly is: 'failing'; readonly verdict: NonNullable<RunEnd['verdict']>; readonly left: readonly string[] }
  | { readonly is: 'ended'; readonly verdict: NonNullable<RunEnd['verdict']> };

/** `stopping`: all were asked to end, so how they end does not matter. */
export function groupState(seen: readonly SeenContainer[], stopping: boolean): GroupState {
  const left = seen.filter(runs).map(({ name }) => name);
  // Of several failures the first: the other containers were ended because of it.
  const fault = seen
    .filter((each) => !runs(each))
    .toSorted((a, b) => endedAtMs(a) - endedAtMs(b))
    .map(faultOf)
    .find((found) => found !== undefined);
  const verdict =
    fault === undefined
      ? ({
          state: 'exited',
          reason: {
            code: 'ContainersEnded',
            message:
              seen.length === 1 ? 'its program has ended with code 0' : 'all of its programs have ended with code 0',
          },
        } as const)
      : ({ state: 'failed', reason: { code: containerExited, message: fault } } as const);
  if (left.length === 0) return { is: 'ended', verdict };
  if (fault !== undefined && !stopping) return { is: 'failing', verdict, left };
  const isPaused = ({ container }: SeenContainer): boolean => container?.State.Status === 'paused';
  // The health of a paused container is unknown.
  const healths = seen.map((each) => ({ name: each.name, health: isPaused(each) ? 'held' : healthOf(each.container) }));
  const sick = healths.find(({ health }) => health === 'unhealthy');
  const address = addressOf(seen[0]?.container ?? null);
  return {
    is: 'running',
    // A container that has ended with 0 counts as ready.
    ready: healths.every(({ health }) => health === 'none' || health === 'healthy'),
    ...(address === undefined ? {} : { address }),
    ...(sick === undefined
      ? {}
      : { trouble: { code: 'Unhealthy', message: `the health check of container "${sick.name}" fails` } }),
    paused: seen.filter(isPaused).map(({ name }) => name),
    going: seen.filter((each) => runs(each) && !isPaused(each)).map(({ name }) => name),
    unchecked: healths.flatMap(({ name, health }) => (health === 'unchecked' ? [name] : [])),
  };
}

export const containerExited = 'ContainerExited';

export const runs = ({ container }: Pick<SeenContainer, 'container'>): boolean =>
  container !== null && ['running', 'paused', 'restarting', 'stopping', 'removing'].includes(container.State.Status);

/** Why a container that does not run has failed; undefined: it has not. */
function faultOf({ name, container }: SeenContainer): string | undefined {
  const is = `container "${name}"`;
  if (container === null) return `${is} was removed, not by Berth`;
  const { Status, ExitCode, OOMKilled } = container.State;
  if (Status === 'created' || Status === 'configured') return `${is} was never started`;
  const bytes = container.HostConfig.Memory ?? 0;
  const memory = bytes === 0 ? 'its memory' : `its ${Math.round(bytes / 1024 ** 2)} MiB of memory`;
  if (OOMKilled === true) return `${is} was killed because it used up ${memory} (exit code ${ExitCode}); give it more`;
  if (ExitCode === 0) return undefined;
  // podman does not recognize every kill by the kernel for lack of memory.
  if (ExitCode === killedCode)
    return `${is} was killed (exit code ${ExitCode}): by the kernel when it used up ${memory}, or by a person`;
  return `${is} ended with exit code ${ExitCode}; its log may say why`;
}

/** A container that was removed or never ran comes first: it was not ended because of another. */
function endedAtMs({ container }: SeenContainer): number {
  const atMs = Date.parse(container?.State.FinishedAt ?? '');
  return Number.isNaN(atMs) ? 0 : atMs;
}

/** 128 plus the number of SIGKILL. */
const killedCode = 137;

function healthOf(container: EngineContainer | null): 'none' | 'unchecked' | 'healthy' | 'unhealthy' {
  if (container === null || !runs({ container })) return 'none';
  const test = container.Config.Healthcheck?.Test ?? [];
  if (test === null || test.length === 0 || test[0] === 'NONE') return 'none';
  const status = container.State.Health?.Status;
  return status === 'healthy' || status === 'unhealthy' ? status : 'unchecked';
}

/** For a check of the instance's owner. */
export function imageHealthOf(container: EngineContainer | null): ImageHealth {
  const health = healthOf(container);
  return health === 'unchecked' ? 'starting' : health;
}

function addressOf(container: EngineContainer | null): string | undefined {
  const settings = container?.NetworkSettings;
  const addresses = [settings?.IPAddress, ...Object.values(settings?.Networks ?? {}).map((each) => each?.IPAddress)];
  return addresses.find((address) => address !== undefined && address !== '');
}
