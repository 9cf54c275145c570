// Turns what an engine answers when it fails into the driver's errors.

import type { GuestPort } from '../../../api/agent-protocol.ts';
import { describeError } from '../../../base/log.ts';
import { DriverError } from '../../host/driver-error.ts';
import { portInUse } from '../../host/port-in-use.ts';
import { labels } from './container-config.ts';
import type { Engine } from './engine.ts';
import { EngineError } from './engine-http.ts';

/** The engine's own errors become the driver's, with `what` in front. */
export async function asDriverError<Result>(what: string, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof DriverError) throw error;
    if (error instanceof EngineError)
      throw new DriverError('ContainerEngineFailed', `${what}: ${error.message}`, error);
    throw error;
  }
}

export async function createError(
  engine: Engine,
  refused: unknown,
  { name, instanceId, directory }: { readonly name: string; readonly instanceId: string; readonly directory: string },
): Promise<DriverError> {
  if (/already in use/i.test(describeError(refused))) {
    const there = await engine.inspect(name).catch(() => null);
    if (there?.Config.Labels?.[labels.directory] !== directory)
      return new DriverError(
        'ContainerEngineFailed',
        `cannot create ${instanceId}: there is a container "${name}" that is not this agent's, and it is left alone; remove or rename it`,
        refused,
      );
  }
  return engineFailed(`cannot create ${instanceId}`, refused);
}

export function startError(
  error: unknown,
  guest: { readonly instanceId: string; readonly ports: readonly GuestPort[] },
  bindAddress: string,
): DriverError {
  const { instanceId, ports } = guest;
  const said = describeError(error);
  if (/address already in use|port is already allocated/i.test(said)) {
    const port = ports.find(({ hostPort }) => new RegExp(`\\b${hostPort}\\b`).test(said)) ?? ports[0];
    if (port !== undefined) return portInUse(instanceId, port, bindAddress);
  }
  return engineFailed(`cannot start ${instanceId}`, error);
}

function engineFailed(what: string, error: unknown): DriverError {
  const said = describeError(error);
  const full = /no space left on device|disk quota exceeded/i.test(said);
  return new DriverError(full ? 'DiskFull' : 'ContainerEngineFailed', `${what}: ${said}`, error);
}
