// A host with its agent: the real agent over the fake driver. The agent dies and comes back, the guests live on in the true world; a
// reboot takes both.

import { agentIdentity } from '../../agent/agent-identity.ts';
import { createAgent } from '../../agent/agent.ts';
import type { Agent } from '../../agent/agent.ts';
import { createFakeDriver } from '../../agent/drivers/fake/driver.ts';
import { type DiskCalls, ledgerFileAt } from '../../agent/ledger-file.ts';
import type { FakeWorld } from '../../agent/drivers/fake/world.ts';
import { createMemoryVolumeFiles } from '../../agent/volumes/memory-volume-files.ts';
import type { AssignmentEvent } from '../../api/agent-protocol.ts';
import { type Client, createClient } from '../../api/client.ts';
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
import { worldView } from './world-view.ts';

export interface HostProcess {
  readonly name: string;
  readonly up: boolean;
  start(): void;
  /** The agent dies at once; guests run on. */
  crash(): void;
  /** The agent lets go of everything; guests run on. */
  stop(): Promise<void>;
  /** The whole host loses power. */
  losePower(): void;
  pause(durationMs: number): void;
  jumpWallTime(byMs: number): void;
}

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
  /** Told of every event of one stream of assignments, as the agent gets it. */
  readonly checkAssignments: () => (event: AssignmentEvent) => void;
  /** The agent gave up for good; in this world it never has a reason to. */
  readonly onGaveUp: (host: string, error: Error) => void;
}

const ledgerPath = '/var/lib/berth/ledger.json';
const identityPath = '/var/lib/berth/agent-id';
const supervisorRestartMs = 1000;

export function createHostProcess(options: HostOptions): HostProcess {
  const { name, seed, network, timeline } = options;
  let starts = 0;
  let boots = 1;
  let life: { readonly peer: Peer; readonly agent: Agent } | undefined;

  const start = (): void => {
    if (life) return;
    starts += 1;
    const bootId = `${name}-boot-${boots}`;
    const prng = seededPrng(seed, `${name}#${starts}`);
    const clock = createProcessClock(timeline, options.clockFaults);
    const peer: Peer = { name, clock, identity: { role: 'host', host: name }, host: name };
    const client = createClient({ fetch: network.fetchFor(peer), url: 'http://berth' });
    const agent = createAgent({
      client: { agent: (host) => watchedAgent(client.agent(host), options.checkAssignments) },
      hostName: name,
      agentVersion: 'sim',
      identity: () => identityOf(options.disk.calls(clock), { clock, prng }),
      drivers: [createFakeDriver({ world: worldView(options.world, clock), host: name, prng: prng.split() })],
      ledgerFile: ledgerFileAt(ledgerPath, options.disk.calls(clock)),
      volumeFiles: createMemoryVolumeFiles({
        disk: options.world.volumeDisk(name),
        clock,
        holders: (volumeId) => options.world.volumeUsers(name, volumeId).length,
        beforeChange: () => sleep(clock, 0), // a dead agent changes nothing
      }),
      measure: async () => ({
        machineId: `${name}-machine`,
        bootId,
        architecture: 'amd64',
        capacity: options.capacity,
        reserved: {},
      }),
      clock,
      prng,
      buggify: options.buggify,
      log: options.log.with({ process: `${name}#${starts}` }),
    });
    life = { peer, agent };
    void agent.failed.then((error) => options.onGaveUp(name, error));
    void agent.start();
  };

  const end = (how: 'process' | 'host'): void => {
    if (!life) return;
    life.peer.clock.kill();
    network.leave(life.peer, how);
    life = undefined;
  };

  return {
    name,
    get up() {
      return life !== undefined;
    },
    start,
    crash: () => end('process'),
    async stop() {
      const stopping = life;
      await stopping?.agent.stop();
      if (life === stopping) end('process');
    },
    losePower() {
      end('host');
      boots += 1;
      options.world.crashHost(name);
      options.disk.losePower();
    },
    pause: (durationMs) => life?.peer.clock.pause(durationMs),
    jumpWallTime: (byMs) => life?.peer.clock.jump(byMs),
  };
}

/** An agent that cannot write its identity ends; whoever supervises it starts it again until it can. */
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

/** The same, with every stream of assignments looked at on its way. */
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
