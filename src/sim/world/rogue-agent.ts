// The rogue agent: it has the token of one host and lies with it. What it says of its own host may be believed, and may harm the guests
// there. What it says of other hosts must be refused or called stale, and must change nothing.

import type { FetchLike } from '../../api/client/client.ts';
import type { Registration, Report } from '../../api/agent-protocol.ts';
import type { Allocation } from '../../core/state/records.ts';
import { expectRefusal, type RogueOptions, type RogueRequest } from './rogue-client.ts';

export interface RogueAgentOptions extends RogueOptions {
  /** The host whose token it has. */
  readonly host: string;
  readonly hosts: readonly string[];
}

const rogueId = `agent_${'6'.repeat(26)}`;

export class RogueAgent {
  readonly #options: RogueAgentOptions;
  readonly #others: readonly string[];
  #sessions = 0;

  constructor(options: RogueAgentOptions) {
    this.#options = options;
    this.#others = options.hosts.filter((name) => name !== options.host);
  }

  /** One request. Resolves to whether it was answered. */
  strike(): Promise<boolean> {
    const { prng, send } = this.#options;
    return prng.chance(1, 2) ? expectRefusal(this.#options, this.#refused()) : say(send, this.#believed());
  }

  #refused(): RogueRequest {
    const { host, prng } = this.#options;
    const victim = this.#others[prng.below(Math.max(1, this.#others.length))] ?? 'nowhere';
    const requests = [
      post('a session of another host', victim, 'session', this.#registration(`${victim}-machine`)),
      post('a heartbeat of another host', victim, 'heartbeat', { epoch: this.#epochOf(victim) }),
      post('a report of another host', victim, 'reports', {
        epoch: this.#epochOf(victim),
        reports: [this.#lie(this.#allocationsOn(victim))],
      }),
      post('its own host on another machine', host, 'session', this.#registration('rogue-machine')),
      ...this.#fromAnotherDirectory(),
      post('a heartbeat of a session to come, too far', host, 'heartbeat', { epoch: 1e300 }),
      post('a report of nothing', host, 'reports', { epoch: this.#epochOf(host), reports: [] }),
      { what: 'what another host should run', method: 'GET', path: `/v1/hosts/${victim}/assignments?epoch=1` },
      { what: 'all instances', method: 'GET', path: '/v1/instances' },
      { what: 'a new instance', method: 'POST', path: '/v1/instances', body: '{"spec":{"image":"tiny"}}' },
      { what: 'the end of a host', method: 'DELETE', path: `/v1/hosts/${victim}?force=true` },
    ];
    return requests[prng.below(requests.length)] ?? requests[0] ?? { what: '', method: 'GET', path: '/v1/rogues' };
  }

  #believed(): RogueRequest {
    const { host, hosts, prng } = this.#options;
    const epoch = Math.max(1, this.#epochOf(host) - prng.below(2));
    const everywhere = hosts.flatMap((name) => this.#allocationsOn(name));
    const reports = Array.from({ length: prng.chance(1, 4) ? 200 : 1 + prng.below(4) }, () =>
      this.#lie(prng.chance(1, 2) ? this.#allocationsOn(host) : everywhere),
    );
    switch (prng.below(4)) {
      case 0:
        if (this.#ownId() === undefined) return post('reports', host, 'reports', { epoch, reports });
        return post('a session of its own', host, 'session', this.#registration(`${host}-machine`));
      case 1:
        return post('a heartbeat', host, 'heartbeat', { epoch, unknownGuests: unknownGuestsOf(reports.slice(0, 5)) });
      default:
        return post('reports', host, 'reports', { epoch, reports });
    }
  }

  /** Only refused once the host has registered: before, the host belongs to the first agent that registers. */
  #fromAnotherDirectory(): RogueRequest[] {
    const { host } = this.#options;
    if (this.#ownId() === undefined) return [];
    const registration = this.#registration(`${host}-machine`, rogueId);
    return [post('its own host from another data directory', host, 'session', registration)];
  }

  #registration(machineId: string, agentId = this.#ownId() ?? rogueId): Registration {
    return {
      session: `rogue-session-${this.#options.host}-${++this.#sessions}`,
      machineId,
      agentId,
      bootId: 'rogue',
      architecture: 'amd64',
      capacity: { VCPU: 4096, MEMORY_MB: 1_000_000_000, DISK_GB: 1_000_000 },
      reserved: {},
      labels: {},
      drivers: [{ name: 'fake', available: true, accelerator: 'none', version: '1' }],
      images: [],
      agentVersion: 'rogue',
    };
  }

  /** A false report on one of these allocations, or on an instance that never existed. */
  #lie(allocations: readonly Allocation[]): Report {
    const { prng } = this.#options;
    const consumer = allocations[prng.below(Math.max(1, allocations.length))]?.consumer;
    const states = ['preparing', 'running', 'suspended', 'stopped', 'exited', 'failed'] as const;
    const guestState = states[prng.below(states.length)] ?? 'failed';
    return {
      instanceId: consumer?.id ?? `inst_${'6'.repeat(26)}`,
      incarnation: Math.max(1, (consumer?.incarnation ?? 1) + prng.below(3) - 1),
      sequence: prng.chance(1, 2) ? 1 + prng.below(5) : 1 + prng.below(1_000_000),
      observedGeneration: prng.below(100),
      guest: prng.chance(1, 4)
        ? { state: 'absent' }
        : { state: guestState, ready: prng.chance(1, 2), ports: [], phases: [] },
    };
  }

  #allocationsOn(name: string): Allocation[] {
    const all = this.#options.state.list('allocation');
    return [...all].filter((each) => each.host === name && each.consumer.kind === undefined);
  }

  #epochOf(name: string): number {
    return this.#options.state.get('host', `hosts/${name}`)?.status.epoch ?? 1;
  }

  /** Undefined: the host has not registered yet. */
  #ownId(): string | undefined {
    return this.#options.state.get('host', `hosts/${this.#options.host}`)?.status.agentId;
  }
}

function unknownGuestsOf(reports: readonly Report[]) {
  return reports.map(({ instanceId, incarnation }) => ({ instanceId, incarnation, driver: 'fake', state: 'running' }));
}

function post(what: string, host: string, route: string, body: unknown): RogueRequest {
  return {
    what,
    method: route === 'session' ? 'PUT' : 'POST',
    path: `/v1/hosts/${host}/${route}`,
    body: JSON.stringify(body),
  };
}

/** Sends a request whatever its answer. Resolves to whether there was one. */
async function say(send: FetchLike, { method, path, body }: RogueRequest): Promise<boolean> {
  const init = { method, headers: {}, ...(body === undefined ? {} : { body }) };
  return send(`http://berth${path}`, init).then(
    () => true,
    () => false,
  );
}
