// Makes, finds, starts and clears away the containers of guests on a container engine, behind the seam of vm/hypervisor.ts. Containers have
// names that follow from the guest, so that a repeated creation finds them; what does not bear our labels is never touched.

import { basename, join } from 'node:path';
import { describeError, type Logger } from '../../../base/log.ts';
import { type Clock, sleep } from '../../../base/clock.ts';
import { createSharedWork } from '../../../base/work/shared-work.ts';
import type { AssignedContainer, GuestPort } from '../../../api/agent-protocol.ts';
import type { Fingerprint, GuestSpec } from '../driver.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { GuestRecord } from '../guest-life/guest-record.ts';
import type { Hypervisor, Machine, MakeCall } from '../guest-life/hypervisor.ts';
import { portInUse } from '../../host/port-in-use.ts';
import { groupAccess } from './access.ts';
import { containerConfig, containerName, labels, portName, referenceText, withContainers } from './container-config.ts';
import type { Engine, EngineContainer, EngineVersion } from './engine.ts';
import { EngineError } from './engine-http.ts';
import type { EngineWatch } from './engine-watch.ts';
import { runGroup } from './group-run.ts';
import { runs } from './group-state.ts';
import { type PulledImage, pullImage, type Pulls } from './pull.ts';

export interface GroupHypervisor extends Hypervisor {
  /** Resolves when nothing is being written for a guest that was let go. */
  quiet(): Promise<void>;
}

export interface GroupHypervisorOptions {
  readonly engine: Engine;
  readonly watch: EngineWatch;
  readonly clock: Clock;
  readonly log: Logger;
  readonly bindAddress: string;
  /** The guests' folder. */
  readonly root: () => Promise<string>;
}

/** What a creation that is under way works with. No record holds it: environments may be secret. */
interface Creation {
  readonly spec: GuestSpec & { readonly containers: readonly AssignedContainer[] };
  readonly images: ReadonlyMap<string, PulledImage>;
}

export function createGroupHypervisor(options: GroupHypervisorOptions): GroupHypervisor {
  const { engine, watch, clock, log, bindAddress, root } = options;
  const creations = new Map<string, Creation>();
  const pulls: Pulls = createSharedWork();
  const letGo = new Set<Promise<void>>();
  let version: EngineVersion | undefined;

  const fingerprint = async (): Promise<Fingerprint> => {
    try {
      version = await engine.version();
      return { available: true, accelerator: 'none', version: `${version.kind} ${version.version}` };
    } catch (error) {
      return { available: false, reason: describeError(error) };
    }
  };

  /** podman without systemd makes no health checks; a second one beside systemd's does no harm. */
  const checkHealth = async (container: string): Promise<void> => {
    version ??= await engine.version();
    if (version.kind === 'podman') await engine.checkHealth(container);
  };

  const run = ({ record, directory, log: ownLog }: Machine) =>
    runGroup({
      engine,
      watch,
      clock,
      log: ownLog,
      instanceId: record.instanceId,
      directory,
      names: namesOf(record),
      stopping: record.stopRequested,
      ready: record.ready,
      suspended: record.suspended ?? false,
      checkHealth,
      onDetached: (written) => {
        const quiet = written.catch((error: unknown) =>
          ownLog.warn('cannot close a log', { error: describeError(error) }),
        );
        letGo.add(quiet);
        void quiet.then(() => letGo.delete(quiet));
      },
    });

  const inspectAll = ({ record }: Machine): Promise<(EngineContainer | null)[]> =>
    told(`cannot look for the containers of ${record.instanceId}`, () =>
      Promise.all(namesOf(record).map((name) => engine.inspect(containerName(record.instanceId, name)))),
    );

  /** All with our label; dependents first, since an engine keeps the one whose network they are in. */
  const removeAll = async (directory: string): Promise<void> => {
    const listed = await engine.list(`${labels.directory}=${directory}`);
    for (let left = [...listed]; left.length > 0; ) {
      const kept: typeof left = [];
      let why: unknown;
      for (const each of left) {
        // One that stands still does not end; where it goes on by itself meanwhile, its removal says so.
        if (each.State === 'paused') await engine.unpause(each.Id);
        // podman would give it ten seconds.
        if (each.State === 'running' || each.State === 'paused') await engine.kill(each.Id, 'SIGKILL');
        await engine.remove(each.Id).catch((error: unknown) => {
          kept.push(each);
          why = error;
        });
      }
      if (kept.length === left.length) throw why;
      left = kept;
    }
  };

  const createAll = async ({
    directory,
    ports,
    creation: { spec, images },
  }: {
    readonly directory: string;
    readonly ports: readonly GuestPort[];
    readonly creation: Creation;
  }): Promise<void> => {
    let networkOf: string | undefined;
    for (const container of spec.containers) {
      const image = images.get(referenceText(container));
      if (image === undefined) throw new DriverError('Internal', `image "${container.imageName}" was not pulled`);
      const name = containerName(spec.instanceId, container.name);
      const config = containerConfig(spec, container, {
        directory,
        imageId: image.id,
        bindAddress,
        ports,
        ...(networkOf === undefined ? {} : { networkOf }),
      });
      const id = await engine.create(name, config).catch(async (error: unknown) => {
        throw await createError(error, { name, instanceId: spec.instanceId, directory });
      });
      networkOf ??= id;
    }
  };

  const createError = async (
    refused: unknown,
    { name, instanceId, directory }: { readonly name: string; readonly instanceId: string; readonly directory: string },
  ): Promise<DriverError> => {
    const said = describeError(refused);
    if (/already in use/i.test(said)) {
      const there = await engine.inspect(name).catch(() => null);
      if (there?.Config.Labels?.[labels.directory] !== directory)
        return new DriverError(
          'ContainerEngineFailed',
          `cannot create ${instanceId}: there is a container "${name}" that is not this agent's, and it is left alone; remove or rename it`,
          refused,
        );
    }
    const full = /no space left on device|disk quota exceeded/i.test(said);
    return new DriverError(
      full ? 'DiskFull' : 'ContainerEngineFailed',
      `cannot create ${instanceId}: ${said}`,
      refused,
    );
  };

  const startError = (
    error: unknown,
    { instanceId, ports }: Pick<GuestRecord, 'instanceId' | 'ports'>,
  ): DriverError => {
    const said = describeError(error);
    if (/address already in use|port is already allocated/i.test(said)) {
      const port = ports.find(({ hostPort }) => new RegExp(`\\b${hostPort}\\b`).test(said)) ?? ports[0];
      if (port !== undefined) return portInUse(instanceId, port, bindAddress);
    }
    const full = /no space left on device|disk quota exceeded/i.test(said);
    return new DriverError(full ? 'DiskFull' : 'ContainerEngineFailed', `cannot start ${instanceId}: ${said}`, error);
  };

  const make = async (call: MakeCall): Promise<void> => {
    const { directory, ports, signal, timed, locally, onProgress } = call;
    const spec = withContainers(call.spec);
    const { instanceId } = spec;
    // Whatever an interrupted creation left has not become a guest, and may have other ports.
    await told(`cannot create ${instanceId}`, () => removeAll(directory));
    const images = new Map<string, PulledImage>();
    await timed('pull', `pulling ${spec.imageName}`, async () => {
      for (const container of spec.containers) {
        const reference = referenceText(container);
        if (images.has(reference)) continue;
        const pull = () => pullImage({ engine, pulls }, container, { signal, onProgress });
        images.set(reference, await told(`cannot create ${instanceId}`, pull));
      }
    });
    const [first] = images.values();
    if (first !== undefined) await call.onImage({ digest: first.digest });
    const creation = { spec, images };
    creations.set(instanceId, creation);
    signal.addEventListener('abort', () => creations.delete(instanceId), { once: true });
    await timed('create', 'making the containers', () => locally(() => createAll({ directory, ports, creation })));
  };

  return {
    name: 'container',
    failureCode: 'ContainerEngineFailed',
    suspends: true,
    access: (inside) => groupAccess(engine, inside),
    make,
    fingerprint,
    chosenAccelerator: () => Promise.resolve('none'),
    async start(machine, { onProcess: _ }) {
      const { record, directory } = machine;
      const { instanceId, ports } = record;
      const creation = creations.get(instanceId);
      creations.delete(instanceId);
      const there = await inspectAll(machine);
      const asRecorded = there[0] !== null && there[0] !== undefined && publishes(there[0], ports);
      if (!asRecorded && creation !== undefined) {
        await told(`cannot start ${instanceId}`, () => removeAll(directory));
        await createAll({ directory, ports, creation });
      }
      for (const name of namesOf(record)) {
        await engine.start(containerName(instanceId, name)).catch(async (error: unknown) => {
          // Those before it must not run on alone; and of a creation the next try makes them anew, with other ports perhaps.
          await (creation === undefined ? killAll(machine) : removeAll(directory)).catch((failure: unknown) =>
            log.error('containers run on alone', { instance: instanceId, error: describeError(failure) }),
          );
          if (creation !== undefined) creations.set(instanceId, creation);
          throw startError(error, record);
        });
      }
      return run(machine);
    },
    async find(machine) {
      const { record, directory } = machine;
      const seen = (await inspectAll(machine)).map((container) => ({ container }));
      const running = seen.filter(runs).length;
      // How it ended, and when, is seen by whoever looks after it.
      if (record.created && record.state === 'running') return run(machine);
      if (running === 0) return null;
      if (record.launching && running < seen.length) {
        // A start that was cut short: nobody has seen it run.
        if (record.created) await told(`cannot end what is left of ${record.instanceId}`, () => killAll(machine));
        else await told(`cannot clear away what is left of ${record.instanceId}`, () => removeAll(directory));
        return null;
      }
      return run(machine);
    },
    async running({ instanceId, directory }) {
      const listed = await told(`cannot look for the containers of ${instanceId}`, () =>
        engine.list(`${labels.directory}=${directory}`),
      );
      return listed.some(({ State }) => State === 'running' || State === 'paused') ? 'its containers run' : undefined;
    },
    purge({ directory }) {
      creations.delete(basename(directory));
      return told(`cannot remove the containers of ${directory}`, () => removeAll(directory));
    },
    startError: ({ record }, end) => Promise.resolve(startError(new Error(end.detail), record)),
    lastWords: () => Promise.resolve(''),
    trimLogs: () => Promise.resolve(),
    async known() {
      const parent = await root();
      const found = new Set<string>();
      for (const { Labels } of await told('cannot look for containers', () => engine.list(labels.directory))) {
        const instanceId = Labels?.[labels.instance];
        if (instanceId !== undefined && Labels?.[labels.directory] === join(parent, instanceId)) found.add(instanceId);
      }
      return [...found];
    },
    async quiet() {
      await Promise.all(letGo);
    },
  };

  /** Resolves when none of them runs: one that is only about to end would not be started again. */
  async function killAll({ record }: Machine): Promise<void> {
    const { instanceId } = record;
    for (const deadlineMs = clock.monotonicMs() + killTimeoutMs; ; ) {
      const running: string[] = [];
      for (const name of namesOf(record)) {
        const container = await engine.inspect(containerName(instanceId, name));
        if (runs({ container })) running.push(containerName(instanceId, name));
      }
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
}

const killTimeoutMs = 60_000; // SIGKILL works at once, but for a disk that hangs
const killPollMs = 50;

const namesOf = ({ containers }: GuestRecord): readonly string[] => containers ?? [];

/** Whether a container was made for just these ports. */
function publishes({ HostConfig }: EngineContainer, ports: readonly GuestPort[]): boolean {
  const bound = Object.entries(HostConfig.PortBindings ?? {}).flatMap(([name, bindings]) =>
    (bindings ?? [])?.map(({ HostPort }) => `${name}=${HostPort ?? ''}`),
  );
  const wanted = ports.map((port) => `${portName(port)}=${port.hostPort}`);
  return bound.length === wanted.length && wanted.every((each) => bound.includes(each));
}

/** The engine's own errors become the driver's. */
async function told<Result>(what: string, act: () => Promise<Result>): Promise<Result> {
  try {
    return await act();
  } catch (error) {
    if (error instanceof DriverError) throw error;
    if (error instanceof EngineError)
      throw new DriverError('ContainerEngineFailed', `${what}: ${error.message}`, error);
    throw error;
  }
}
