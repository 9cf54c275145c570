// Creates, finds, starts and removes the containers of guests on a container engine, behind the seam of
// guest-life/hypervisor.ts. The containers' names follow from the guest, so that a repeated creation finds them.

import { basename, join } from 'node:path';
import type { Accelerator, GuestPort } from '../../../api/agent-protocol.ts';
import type { Clock } from '../../../base/clock.ts';
import { describeError, type Logger } from '../../../base/log.ts';
import { createSharedWork } from '../../../base/concurrency/shared-work.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { GuestAccess } from '../access.ts';
import type { Fingerprint, GuestVolume } from '../driver.ts';
import type { GuestRecord } from '../guest-life/guest-record.ts';
import { type CredentialFor, guestCredentialFor } from '../../images/credentials/image-credentials.ts';
import { ownCredentials } from '../own-credentials.ts';
import type { GuestsInside, Hypervisor, Machine, MakeCall, Run, RunEnd } from '../guest-life/hypervisor.ts';
import { groupAccess } from './access.ts';
import {
  type ContainerNetwork,
  containerName,
  labels,
  portName,
  referenceText,
  withContainers,
} from './container-config.ts';
import { type Creation, createAll, inspectAll, killAll, removeAll } from './container-set.ts';
import type { Engine, EngineVersion } from './engine.ts';
import type { EngineContainer } from './engine-answers.ts';
import { asDriverError, startError } from './engine-failures.ts';
import type { EngineWatch } from './engine-watch.ts';
import { runGroup } from './group-run.ts';
import { runs } from './group-state.ts';
import { assertMountable, mountsLabel, mountsOfLabel } from './mounts/mounts.ts';
import { type PulledImage, pullImage, type Pulls } from './pull.ts';
import { fixedVolumes, makeMountPoints, mountVolumes, releaseVolume } from './mounts/volume-mounts.ts';

export interface GroupHypervisorOptions {
  readonly engine: Engine;
  readonly watch: EngineWatch;
  readonly clock: Clock;
  readonly log: Logger;
  readonly bindAddress: string;
  /** Of the host. */
  readonly imageCredentials?: CredentialFor | undefined;
  readonly ownNetwork?: ContainerNetwork | undefined;
  readonly filesystems: boolean;
  /** The guests' folder. */
  readonly root: () => Promise<string>;
}

export class GroupHypervisor implements Hypervisor {
  readonly name = 'container';
  readonly failureCode = 'ContainerEngineFailed';
  readonly measures = true;
  readonly suspends = true;
  readonly volumes?: true;
  readonly #options: GroupHypervisorOptions;
  readonly #engine: Engine;
  readonly #creations = new Map<string, Creation>();
  readonly #pulls: Pulls = createSharedWork();
  readonly #detached = new Set<Promise<void>>();
  #version: EngineVersion | undefined;
  /** The last creation with mounts. */
  #mounting: Promise<void> = Promise.resolve();

  constructor(options: GroupHypervisorOptions) {
    this.#options = options;
    this.#engine = options.engine;
    if (options.filesystems) this.volumes = true;
  }

  async fingerprint(): Promise<Fingerprint> {
    try {
      this.#version = await this.#engine.version();
      return { available: true, accelerator: 'none', version: `${this.#version.kind} ${this.#version.version}` };
    } catch (error) {
      return { available: false, reason: describeError(error) };
    }
  }

  chosenAccelerator(): Promise<Accelerator> {
    return Promise.resolve('none');
  }

  access(inside: GuestsInside): GuestAccess {
    return groupAccess(this.#engine, inside, (container) => this.#checkHealth(container));
  }

  async make(call: MakeCall): Promise<void> {
    const { directory, ports, signal, timed, locally } = call;
    const spec = withContainers(call.spec);
    const { instanceId } = spec;
    // What an interrupted creation left has not become a guest, and may have other ports.
    await asDriverError(`cannot create ${instanceId}`, () => removeAll(this.#engine, directory));
    const images = await this.#pullAll(call, spec);
    const [first] = images.values();
    if (first !== undefined) await call.onImage({ digest: first.digest });
    const creation = { spec, images };
    this.#creations.set(instanceId, creation);
    signal.addEventListener('abort', () => this.#creations.delete(instanceId), { once: true });
    await timed('create', 'making the containers', () =>
      locally(() => this.#createAll(creation, { directory, ports })),
    );
  }

  async start(machine: Machine): Promise<Run> {
    const { record, directory } = machine;
    const { instanceId, ports } = record;
    const creation = this.#creations.get(instanceId);
    this.#creations.delete(instanceId);
    const [first] = await inspectAll(this.#engine, setOf(record));
    const asRecorded = first !== null && first !== undefined && publishes(first, ports);
    if (!asRecorded && creation !== undefined) {
      await asDriverError(`cannot start ${instanceId}`, () => removeAll(this.#engine, directory));
      await this.#createAll(creation, { directory, ports });
    }
    await this.#closeNetwork(instanceId);
    await mountVolumes(this.#options.clock, record.volumes ?? []);
    for (const name of namesOf(record)) {
      await this.#engine.start(containerName(instanceId, name)).catch(async (error: unknown) => {
        await this.#undoStart(machine, creation);
        throw startError(error, record, this.#options.bindAddress);
      });
    }
    return this.#run(machine);
  }

  async find(machine: Machine): Promise<Run | null> {
    const { record } = machine;
    const seen = (await inspectAll(this.#engine, setOf(record))).map((container) => ({ container }));
    const running = seen.filter(runs).length;
    // The run finds out how it ended, and when.
    if (record.created && record.state === 'running') return this.#run(machine);
    if (running === 0) return null;
    if (record.launching && running < seen.length) {
      await this.#endInterruptedStart(machine);
      return null;
    }
    return this.#run(machine);
  }

  async running({ instanceId, directory }: Parameters<Hypervisor['running']>[0]): Promise<string | undefined> {
    const listed = await asDriverError(`cannot look for the containers of ${instanceId}`, () =>
      this.#engine.list(`${labels.directory}=${directory}`),
    );
    return listed.some(({ State }) => State === 'running' || State === 'paused') ? 'its containers run' : undefined;
  }

  takeVolume({ volume }: { readonly volume: GuestVolume }): Promise<void> {
    return releaseVolume(this.#options.clock, volume);
  }

  purge({ directory }: { readonly directory: string }): Promise<void> {
    this.#creations.delete(basename(directory));
    return asDriverError(`cannot remove the containers of ${directory}`, () => removeAll(this.#engine, directory));
  }

  startError({ record }: Machine, end: RunEnd): Promise<DriverError> {
    return Promise.resolve(startError(new Error(end.detail), record, this.#options.bindAddress));
  }

  lastWords(): Promise<string> {
    return Promise.resolve('');
  }

  trimLogs(): Promise<void> {
    return Promise.resolve();
  }

  async known(): Promise<readonly string[]> {
    const parent = await this.#options.root();
    const found = new Set<string>();
    const listed = await asDriverError('cannot look for containers', () => this.#engine.list(labels.directory));
    for (const { Labels } of listed) {
      const instanceId = Labels?.[labels.instance];
      if (instanceId !== undefined && Labels?.[labels.directory] === join(parent, instanceId)) found.add(instanceId);
    }
    return [...found];
  }

  /** Resolves when nothing is being written for a guest that was detached. */
  async quiet(): Promise<void> {
    await Promise.all(this.#detached);
  }

  async #pullAll(call: MakeCall, spec: Creation['spec']): Promise<ReadonlyMap<string, PulledImage>> {
    const { signal, onProgress } = call;
    const own = ownCredentials(spec);
    const credentialFor: CredentialFor = async (source) =>
      guestCredentialFor(own, source) ?? this.#options.imageCredentials?.(source);
    const parts = { engine: this.#engine, pulls: this.#pulls, credentialFor };
    const images = new Map<string, PulledImage>();
    await call.timed('pull', `pulling ${spec.imageName}`, async () => {
      for (const container of spec.containers) {
        const reference = referenceText(container);
        if (images.has(reference)) continue;
        const pull = (): Promise<PulledImage> => pullImage(parts, container, { signal, onProgress });
        images.set(reference, await asDriverError(`cannot create ${spec.instanceId}`, pull));
      }
    });
    return images;
  }

  async #createAll(
    creation: Creation,
    to: { readonly directory: string; readonly ports: readonly GuestPort[] },
  ): Promise<void> {
    // One after the other, so that two guests do not get folders of the host that one of them can replace for the other.
    await makeMountPoints(creation.spec.volumes ?? []);
    if (!creation.spec.containers.some(({ mounts }) => mounts !== undefined))
      return this.#createOnNetwork(creation, to);
    const before = this.#mounting;
    const made = (async () => {
      await before.catch(() => {}); // its caller has had the error
      await assertMountable(creation.spec.containers, await this.#mountsOfOthers(to.directory), to.directory);
      await this.#createOnNetwork(creation, to);
    })();
    this.#mounting = made;
    return made;
  }

  async #mountsOfOthers(directory: string): Promise<ReturnType<typeof mountsOfLabel>> {
    const listed = await asDriverError('cannot look for containers', () => this.#engine.list(mountsLabel));
    return listed.flatMap(({ Labels }) =>
      Labels?.[labels.directory] === directory ? [] : mountsOfLabel(Labels?.[mountsLabel]),
    );
  }

  async #createOnNetwork(
    creation: Creation,
    to: { readonly directory: string; readonly ports: readonly GuestPort[] },
  ): Promise<void> {
    const { bindAddress, ownNetwork } = this.#options;
    if (ownNetwork === undefined) return createAll(this.#engine, creation, { ...to, bindAddress });
    // Docker gives them none on a network without IPv6.
    const hasLinkLocal = (await this.#engine.version()).kind === 'podman';
    return createAll(this.#engine, creation, { ...to, bindAddress, network: ownNetwork.name, hasLinkLocal });
  }

  /** Before a guest is on it. */
  async #closeNetwork(instanceId: string): Promise<void> {
    const { ownNetwork } = this.#options;
    if (ownNetwork === undefined) return;
    const { name, guard } = ownNetwork;
    await asDriverError(`cannot start ${instanceId}`, async () => {
      const bridge = await this.#engine.bridge(name);
      if (bridge === null)
        throw new DriverError(
          'ContainerEngineFailed',
          `the container engine has no bridge network "${name}"; create it, or change containerNetwork of the agent`,
        );
      await guard.close(bridge);
    });
  }

  /** Containers that did start must not run alone. Those of a creation are removed: the next attempt may have other ports. */
  async #undoStart({ record, directory }: Machine, creation: Creation | undefined): Promise<void> {
    const undo = creation === undefined ? killAll(this.#options, setOf(record)) : removeAll(this.#engine, directory);
    await undo.catch((failure: unknown) =>
      this.#options.log.error('containers run on alone', {
        instance: record.instanceId,
        error: describeError(failure),
      }),
    );
    if (creation !== undefined) this.#creations.set(record.instanceId, creation);
  }

  /** The agent died during the start: the guest was never reported as running. */
  async #endInterruptedStart({ record, directory }: Machine): Promise<void> {
    const { instanceId } = record;
    if (record.created)
      await asDriverError(`cannot end what is left of ${instanceId}`, () => killAll(this.#options, setOf(record)));
    else
      await asDriverError(`cannot clear away what is left of ${instanceId}`, () => removeAll(this.#engine, directory));
  }

  #run({ record, directory, log }: Machine): Run {
    const { watch, clock } = this.#options;
    const run = runGroup({
      engine: this.#engine,
      watch,
      clock,
      log,
      instanceId: record.instanceId,
      directory,
      names: namesOf(record),
      stopping: record.stopRequested,
      ready: record.ready,
      suspended: record.suspended ?? false,
      checkHealth: (container) => this.#checkHealth(container),
      onDetached: (written) => this.#awaitWritten(written, log),
    });
    return this.volumes ? { ...run, volumes: fixedVolumes(record.volumes ?? []) } : run;
  }

  #awaitWritten(written: Promise<void>, log: Logger): void {
    const quiet = written.catch((error: unknown) => log.warn('cannot close a log', { error: describeError(error) }));
    this.#detached.add(quiet);
    void quiet.then(() => this.#detached.delete(quiet));
  }

  /** podman without systemd makes no health checks; a second check beside systemd's does no harm. */
  async #checkHealth(container: string): Promise<void> {
    this.#version ??= await this.#engine.version();
    if (this.#version.kind === 'podman') await this.#engine.checkHealth(container);
  }
}

const namesOf = ({ containers }: GuestRecord): readonly string[] => containers ?? [];

const setOf = (record: GuestRecord) => ({ instanceId: record.instanceId, names: namesOf(record) });

/** Whether a container was made for just these ports. */
function publishes({ HostConfig }: EngineContainer, ports: readonly GuestPort[]): boolean {
  const bound = Object.entries(HostConfig.PortBindings ?? {}).flatMap(([name, bindings]) =>
    (bindings ?? [])?.map(({ HostPort }) => `${name}=${HostPort ?? ''}`),
  );
  const wanted = ports.map((port) => `${portName(port)}=${port.hostPort}`);
  return bound.length === wanted.length && wanted.every((each) => bound.includes(each));
}
