// The containers of a guest as a set on the engine: created, killed and removed together. A container without our labels is
// never touched.

import { type Clock, sleep } from '../../../base/clock.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { GuestContainer, GuestSpec } from '../driver.ts';
import { type ContainerPlace, containerConfig, containerName, labels, referenceText } from './container-config.ts';
import type { Engine } from './engine.ts';
import type { EngineContainer, ListedContainer } from './engine-answers.ts';
import { asDriverError, createError } from './engine-failures.ts';
import { runs } from './group-state.ts';
import type { PulledImage } from './pull.ts';

/** The inputs of a creation that is under way. No record holds them: environments may be secret. */
export interface Creation {
  readonly spec: GuestSpec & { readonly containers: readonly GuestContainer[] };
  readonly images: ReadonlyMap<string, PulledImage>;
}

interface SetOfContainers {
  readonly instanceId: string;
  readonly names: readonly string[];
}

export function inspectAll(
  engine: Engine,
  { instanceId, names }: SetOfContainers,
): Promise<(EngineContainer | null)[]> {
  return asDriverError(`cannot look for the containers of ${instanceId}`, () =>
    Promise.all(names.map((name) => engine.inspect(containerName(instanceId, name)))),
  );
}

/** All with our label; dependents first, because an engine keeps the container whose network they use. */
export async function removeAll(engine: Engine, directory: string): Promise<void> {
  let left = await engine.list(`${labels.directory}=${directory}`);
  while (left.length > 0) {
    const kept: ListedContainer[] = [];
    let why: unknown;
    for (const each of left) {
      await kill(engine, each);
      await engine.remove(each.Id).catch((error: unknown) => {
        kept.push(each);
        why = error;
      });
    }
    if (kept.length === left.length) throw why;
    left = kept;
  }
}

async function kill(engine: Engine, { Id, State }: ListedContainer): Promise<void> {
  // A paused container does not end; if it was resumed meanwhile, the removal reports it.
  if (State === 'paused') await engine.unpause(Id);
  // podman would give it ten seconds.
  if (State === 'running' || State === 'paused') await engine.kill(Id, 'SIGKILL');
}

export async function createAll(
  engine: Engine,
  { spec, images }: Creation,
  to: Pick<ContainerPlace, 'directory' | 'ports' | 'bindAddress' | 'network' | 'hasLinkLocal'>,
): Promise<void> {
  const { instanceId } = spec;
  let networkOf: string | undefined;
  for (const container of spec.containers) {
    const image = images.get(referenceText(container));
    if (image === undefined) throw new DriverError('Internal', `image "${container.imageName}" was not pulled`);
    const name = containerName(instanceId, container.name);
    const config = containerConfig(spec, container, {
      ...to,
      imageId: image.id,
      ...(networkOf === undefined ? {} : { networkOf }),
    });
    const id = await engine.create(name, config).catch(async (error: unknown) => {
      throw await createError(engine, error, { name, instanceId, directory: to.directory });
    });
    networkOf ??= id;
  }
}

const killTimeoutMs = 60_000; // SIGKILL works at once, except when a disk hangs
const killPollMs = 50;

/** Resolves when none of them runs: a container that is still ending could not be started again. */
export async function killAll(
  { engine, clock }: { readonly engine: Engine; readonly clock: Clock },
  { instanceId, names }: SetOfContainers,
): Promise<void> {
  for (const deadlineMs = clock.monotonicMs() + killTimeoutMs; ; ) {
    const running: string[] = [];
    for (const name of names.map((each) => containerName(instanceId, each)))
      if (runs({ container: await engine.inspect(name) })) running.push(name);
    if (running.length === 0) return;
    if (clock.monotonicMs() >= deadlineMs)
      throw new DriverError(
        'ContainerEngineFailed',
        `cannot end the containers of ${instanceId}: ${running.join(', ')} run on`,
      );
    for (const name of running) {
      if ((await engine.inspect(name))?.State.Status === 'paused') await engine.unpause(name);
      await engine.kill(name, 'SIGKILL');
    }
    await sleep(clock, killPollMs);
  }
}
