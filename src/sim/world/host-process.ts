// A host with its agent: the real agent over the fake driver. When the agent dies and comes back, the guests live on in the true world; a
// reboot ends both.

import { dirname } from 'node:path';
import { agentIdentity } from '../../agent/agent-identity.ts';
import { createAgent } from '../../agent/agent.ts';
import type { Agent } from '../../agent/agent.ts';
import { createFakeDriver } from '../../agent/drivers/fake/driver.ts';
import { type DiskCalls, ledgerFileAt } from '../../agent/ledger/ledger-file.ts';
import type { FakeWorld } from '../../agent/drivers/fake/world.ts';
import { createMemoryRunFiles, readMemoryDisk, type RunMemory } from '../../agent/runner/files/memory-run-files.ts';
import { createMemoryVolumeFiles } from '../../agent/volumes/files/memory-volume-files.ts';
import { createMemoryIncomingFiles, type IncomingMemory } from '../../agent/migration/memory-incoming-files.ts';
import { ApiError } from '../../api/errors.ts';
import type { AssignmentEvent } from '../../api/agent-protocol.ts';
import { type Client, createClient } from '../../api/client/client.ts';
import type { Amounts } from '../../api/resources/metadata.ts';
import type { Buggify } from '../../base/buggify.ts';
import { type Clock, sleep } from '../../base/clock.ts';
import { newId } from '../../base/ids.ts';
import type { Logger } from '../../base/log.ts';
import { type Prng, seededPrng } from '../../base/prng.ts';
import type { Network } from './network.ts';
import type { Peer } from './peer.ts';
import { type ClockFaults, createProcessClock } from './process-clock.ts';
import type { SimDisk } from './sim-disk.ts';
import type { Timeline } from './timeline.ts';
import { treeOfCommit } from './commits.ts';
import { SimDirect, type SimOffers } from './sim-direct.ts';
import { SimWatchdog, simWatchdogMs } from './sim-watchdog.ts';
import { worldView } from './world-view.ts';

export interface HostOptions {
  readonly name: string;
  readonly seed: number;
  readonly capacity: Amounts;
  readonly timeline: Timeline;
  readonly network: Network;
  readonly world: FakeWorld;
  readonly disk: SimDisk;
  readonly log: Logger;
  readonly buggify: Buggify;
  /** The clock of the machine. */
  readonly clockFaults: ClockFaults;
  /** The machine has a watchdog device; the ids are of instances. Absent: it has none. */
  readonly needsLease?: ((instanceId: string) => boolean) | undefined;
  /** Guests can move to and from it; what hosts offer to each other for that. */
  readonly moves?: SimOffers;
  /** Its power is off for good. */
  readonly isDead: () => boolean;
  /** Makes a check for one stream of assignments; the check is called with each event as the agent gets it. */
  readonly checkAssignments: () => (event: AssignmentEvent) => void;
  /** Called when the agent gives up for good; in this world it never has a reason to. */
  readonly onGaveUp: (host: string, error: Error) => void;
}

const ledgerPath = '/var/lib/berth/ledger.json';
const identityPath = '/var/lib/berth/agent-id';
const supervisorRestartMs = 1000;
/** How long a machine takes to boot. */
const resetMs = 2_000;

export class HostProcess {
  readonly name: string;
  readonly #options: HostOptions;
  /** Files of runs. */
  readonly #runMemory: RunMemory = new Map();
  /** By the folder of the run. */
  readonly #commits = new Map<string, string>();
  readonly #watchdog: SimWatchdog | undefined;
  readonly #incoming: IncomingMemory = new Map();
  #starts = 0;
  #boots = 1;
  #life: { readonly peer: Peer; readonly agent: Agent; readonly gone: AbortController } | undefined;

  constructor(options: HostOptions) {
    this.name = options.name;
    this.#options = options;
    const { needsLease, timeline, world } = options;
    this.#watchdog =
      needsLease &&
      new SimWatchdog({
        timeline,
        rate: options.clockFaults.rate ?? 1,
        guestsLeft: () =>
          [...world.guests()].some(
            ({ host, running, instanceId }) => host === this.name && running && needsLease(instanceId),
          ),
        reset: () => this.#reset(),
      });
  }

  /** The watchdog device resets the machine. */
  #reset(): void {
    this.losePower();
    this.#options.timeline.schedule(resetMs, () => {
      if (!this.#options.isDead()) this.start();
    });
  }

  /** The agent runs. */
  get up(): boolean {
    return this.#life !== undefined;
  }

  start(): void {
    if (this.#life) return;
    this.#starts += 1;
    const { name } = this;
    const clock = createProcessClock(this.#options.timeline, this.#options.clockFaults);
    const peer: Peer = { name, clock, principal: { kind: 'host', host: name }, host: name };
    const gone = new AbortController();
    const agent = this.#createAgent(peer, gone.signal);
    this.#life = { peer, agent, gone };
    void agent.failed.then((error) => this.#options.onGaveUp(name, error));
    void agent.start();
  }

  /** The agent dies at once; guests run on. */
  crash(): void {
    this.#end('process');
  }

  /** The agent ends in order; guests run on. */
  async stop(): Promise<void> {
    const stopping = this.#life;
    await stopping?.agent.stop();
    if (this.#life === stopping) this.#end('process');
  }

  /** The whole host loses power. */
  losePower(): void {
    this.#end('host');
    this.#boots += 1;
    this.#options.world.crashHost(this.name);
    this.#options.disk.losePower();
  }

  /** What its agent answers on the connection that it holds. */
  async answer(path: string): Promise<Uint8Array> {
    const life = this.#life;
    const [, instanceId = '', id = '', name] = /^\/guests\/(\w+)\/moves\/(\w+)(?:\/(\w+))?/.exec(path) ?? [];
    if (life === undefined) throw new ApiError('HostUnreachable', `${this.name} is not connected`);
    await sleep(life.peer.clock, 1); // a paused agent answers later, and a dead one never
    const { outgoing } = life.agent;
    if (name === undefined)
      return new TextEncoder().encode(JSON.stringify(await outgoing.manifest({ instanceId, id })));
    const query = new URL(path, 'http://agent').searchParams;
    const [offset, length] = [Number(query.get('offset')), Number(query.get('length'))];
    return outgoing.read({ instanceId, id }, { name, offset, length });
  }

  pause(durationMs: number): void {
    this.#life?.peer.clock.pause(durationMs);
  }

  jumpWallTime(byMs: number): void {
    this.#life?.peer.clock.jump(byMs);
  }

  #createAgent(peer: Peer, gone: AbortSignal): Agent {
    const { name, clock } = peer;
    const { seed, network, world, disk, checkAssignments, buggify, log, moves } = this.#options;
    const id = `${name}#${this.#starts}`;
    const prng = seededPrng(seed, id);
    const runPrng = seededPrng(seed, `${id} runs`);
    const client = createClient({ fetch: network.fetchFor(peer), url: 'http://berth' });
    return createAgent({
      client: { agent: (host) => watchedAgent(client.agent(host), checkAssignments) },
      hostName: name,
      agentVersion: 'sim',
      identity: () => identityOf(disk.calls(clock), { clock, prng }),
      drivers: [
        createFakeDriver({
          world: worldView(world, clock),
          host: name,
          prng: prng.split(),
          readRunDisk: async (path) => this.#runDisk(path),
          ...(moves ? { movesLive: true } : {}),
        }),
      ],
      runs: {
        files: createMemoryRunFiles(this.#runMemory),
        fetchRepository: async ({ commit }, toTarPath) => {
          await sleep(clock, 0); // a dead agent fetches nothing
          this.#commits.set(dirname(toTarPath), commit);
        },
        randomSecret: (length) => Buffer.from(Array.from({ length }, () => runPrng.below(256))),
      },
      ledgerFile: ledgerFileAt(ledgerPath, disk.calls(clock)),
      volumeFiles: createMemoryVolumeFiles({
        disk: world.volumeDisk(name),
        clock,
        holders: (volumeId) => world.volumeUsers(name, volumeId).length,
        beforeChange: () => sleep(clock, 0), // a dead agent changes nothing
      }),
      ...(moves
        ? {
            incomingFiles: createMemoryIncomingFiles(this.#incoming, () => sleep(clock, 0)),
            directMoves: new SimDirect({ name, offers: moves, clock, gone }),
          }
        : {}),
      measure: this.#measured(),
      ...(this.#watchdog ? { watchdog: this.#watchdog.device(() => clock.monotonicMs()) } : {}),
      clock,
      prng,
      buggify,
      log: log.with({ process: id }),
    });
  }

  #runDisk(path: string): Uint8Array {
    const disk = readMemoryDisk(this.#runMemory, path);
    const commit = this.#commits.get(dirname(path));
    return commit === undefined ? disk : Buffer.concat([disk, treeOfCommit(commit)]);
  }

  /** What the agent measures of its machine; a reboot gives it another boot id. */
  #measured() {
    const { capacity } = this.#options;
    const machine = { machineId: `${this.name}-machine`, bootId: `${this.name}-boot-${this.#boots}` };
    const watchdog = this.#watchdog ? { watchdogMs: simWatchdogMs } : {};
    return async () => ({ ...machine, ...watchdog, architecture: 'amd64' as const, capacity, reserved: {} });
  }

  #end(how: 'process' | 'host'): void {
    if (!this.#life) return;
    this.#life.peer.clock.kill();
    this.#life.gone.abort();
    this.#options.network.leave(this.#life.peer, how);
    this.#life = undefined;
  }
}

/** An agent that cannot write its identity ends; its supervisor starts it again until it can. */
async function identityOf(
  disk: DiskCalls,
  { clock, prng }: { readonly clock: Clock; readonly prng: Prng },
): Promise<string> {
  const file = ledgerFileAt(identityPath, disk);
  for (;;) {
    try {
      return await agentIdentity({ file, place: identityPath, makeId: () => newId('agent', clock.nowMs(), prng) });
    } catch {
      await sleep(clock, supervisorRestartMs); // the false disk was told to be full
    }
  }
}

/** The same client, with every stream of assignments checked on its way. */
function watchedAgent(
  agent: ReturnType<Client['agent']>,
  check: HostOptions['checkAssignments'],
): ReturnType<Client['agent']> {
  return {
    ...agent,
    async *assignments(epoch, signal) {
      const look = check();
      for await (const event of agent.assignments(epoch, signal)) {
        look(event);
        yield event;
      }
    },
  };
}
