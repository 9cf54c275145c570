// The rogue agent: it has the token of one host and lies with it. What it says of its own host may be believed, and may harm the guests
// there; whatever it says of others must be refused or called stale, and change nothing.

import type { FetchLike } from '../../api/client.ts';
import type { Registration, Report } from '../../api/agent-protocol.ts';
import type { Allocation } from '../../core/state/records.ts';
import { expectRefusal, type RogueOptions, type RogueRequest } from './rogue-client.ts';

export interface RogueAgentOptions extends RogueOptions {
  /** Whose token it has. */
  readonly host: string;
  readonly hosts: readonly string[];
}

const rogueId = `agent_${'6'.repeat(26)}`;

export function createRogueAgent(options: RogueAgentOptions) {
  const { host, hosts, state, prng } = options;
  let sessions = 0;

  const others = hosts.filter((name) => name !== host);
  const other = (): string => others[prng.below(Math.max(1, others.length))] ?? 'nowhere';
  const epochOf = (name: string): number => state.get('host', `hosts/${name}`)?.status.epoch ?? 1;
  const post = (what: string, of: string, route: string, body: unknown): RogueRequest => ({
    what,
    method: route === 'session' ? 'PUT' : 'POST',
    path: `/v1/hosts/${of}/${route}`,
    body: JSON.stringify(body),
  });
  /** Undefined: the host has not registered yet, and is whose who comes first. */
  const ownId = (): string | undefined => state.get('host', `hosts/${host}`)?.status.agentId;
  const registration = (machineId: string, agentId = ownId() ?? rogueId): Registration => ({
    session: `rogue-session-${host}-${++sessions}`,
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
  });

  const refused = (): RogueRequest => {
    const victim = other();
    const requests = [
      post('a session of another host', victim, 'session', registration(`${victim}-machine`)),
      post('a heartbeat of another host', victim, 'heartbeat', { epoch: epochOf(victim) }),
      post('a report of another host', victim, 'reports', {
        epoch: epochOf(victim),
        reports: [lie(allocationsOn(victim))],
      }),
      post('its own host on another machine', host, 'session', registration('rogue-machine')),
      ...(ownId() === undefined
        ? []
        : [
            post('its own host from another data directory', host, 'session', registration(`${host}-machine`, rogueId)),
          ]),
      post('a heartbeat of a session to come, too far', host, 'heartbeat', { epoch: 1e300 }),
      post('a report of nothing', host, 'reports', { epoch: epochOf(host), reports: [] }),
      { what: 'what another host should run', method: 'GET', path: `/v1/hosts/${victim}/assignments?epoch=1` },
      { what: 'all instances', method: 'GET', path: '/v1/instances' },
      { what: 'a new instance', method: 'POST', path: '/v1/instances', body: '{"spec":{"image":"tiny"}}' },
      { what: 'the end of a host', method: 'DELETE', path: `/v1/hosts/${victim}?force=true` },
    ];
    return requests[prng.below(requests.length)] ?? requests[0] ?? { what: '', method: 'GET', path: '/v1/rogues' };
  };

  const allocationsOn = (name: string): Allocation[] =>
    [...state.list('allocation')].filter((each) => each.host === name && each.consumer.kind === undefined);

  /** Of one of these allocations, or of an instance that never was. */
  const lie = (allocations: readonly Allocation[]): Report => {
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
  };

  const believed = (): RogueRequest => {
    const epoch = Math.max(1, epochOf(host) - prng.below(2));
    const everywhere = hosts.flatMap(allocationsOn);
    const reports = Array.from({ length: prng.chance(1, 4) ? 200 : 1 + prng.below(4) }, () =>
      lie(prng.chance(1, 2) ? allocationsOn(host) : everywhere),
    );
    switch (prng.below(4)) {
      case 0:
        if (ownId() === undefined) return post('reports', host, 'reports', { epoch, reports });
        return post('a session of its own', host, 'session', registration(`${host}-machine`));
      case 1:
        return post('a heartbeat', host, 'heartbeat', {
          epoch,
          unknownGuests: reports.slice(0, 5).map(({ instanceId, incarnation }) => ({
            instanceId,
            incarnation,
            driver: 'fake',
            state: 'running',
          })),
        });
      default:
        return post('reports', host, 'reports', { epoch, reports });
    }
  };

  return {
    /** One request. Answers whether it was answered. */
    strike: (): Promise<boolean> =>
      prng.chance(1, 2) ? expectRefusal(options, refused()) : say(options.send, believed()),
  };
}

/** Whatever comes of it. Answers whether it was heard. */
async function say(send: FetchLike, { method, path, body }: RogueRequest): Promise<boolean> {
  const init = { method, headers: {}, ...(body === undefined ? {} : { body }) };
  return send(`http://berth${path}`, init).then(
    () => true,
    () => false,
  );
}
