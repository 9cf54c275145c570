// Named scenarios: what a seed draws, bent towards one subject. The rest stays as the seed has it.

import type { FaultKind } from './faults/registry.ts';
import type { Scenario } from './scenario.ts';
import type { Weather } from './world/weather.ts';

/** Faults that cut hosts off, freeze them or end them, and faults of control planes, which then hear nothing. */
const losses: readonly FaultKind[] = [
  'agent-crash',
  'agent-pause',
  'agent-stop',
  'host-power-loss',
  'partition',
  'all-hosts-parted',
  'server-crash',
  'server-pause',
  'host-declared-down',
];

/** Faults that no guest notices: a control plane is gone, or stands still. */
const serverFaults: readonly FaultKind[] = ['server-crash', 'server-pause'];
/** Faults that end guests or hide them. */
const hostFaults: readonly FaultKind[] = ['agent-crash', 'agent-pause', 'guest-crash', 'host-power-loss', 'partition'];
/** Faults that end or stop one of the parties of a move. */
const moving: readonly FaultKind[] = [
  'agent-crash',
  'server-crash',
  'agent-pause',
  'partition',
  'agent-stop',
  'server-pause',
  'host-power-loss',
];

/** Between any two steps of a drain a server may end, another may lead, and the host may be lost. */
const besideDrains: readonly FaultKind[] = [
  'server-crash',
  'server-pause',
  'agent-crash',
  'agent-pause',
  'host-power-loss',
  'partition',
];

/** Another server leads, and the former one may not know. */
const leads: readonly FaultKind[] = ['server-pause', 'server-crash', 'server-store-parted', 'server-stop'];

/** One commit of six is made, and its answer is lost. */
const storeLost = ({ weather }: Scenario): Weather['store'] => ({ ...weather.stormy.store, unknown: 150 });

/** Half of all seeds. */
const isCalm = (drawn: Scenario): boolean => drawn.stormMs % 2_000 === 0;

function updated(drawn: Scenario): Scenario {
  const { quota: _quota, ...rest } = drawn;
  const calm = isCalm(drawn);
  const kinds = calm ? serverFaults : [...serverFaults, ...hostFaults];
  return {
    ...rest,
    hosts: Array.from({ length: 4 }, () => ({ VCPU: 24, MEMORY_MB: 24_576, DISK_GB: 200 })),
    tenants: 1,
    instancesMax: 5,
    stormMs: 120_000,
    betweenCallsMsMean: Math.max(300, drawn.betweenCallsMsMean),
    faults: kinds.map((kind, index) => ({ kind, everyMsMean: 12_000 + 3_000 * index })),
    unusual: calm ? new Map() : drawn.unusual,
    limits: {},
    clocks: [],
    restored: false,
    updates: calm ? 'calm' : 'stormy',
  };
}

/** With much room, as few full hosts take nothing more, and with many faults. */
const inTurmoil = (drawn: Scenario): Scenario => ({
  ...drawn,
  hosts: Array.from({ length: 2 }, () => [...drawn.hosts, ...drawn.hosts, ...drawn.hosts, ...drawn.hosts])
    .flat()
    .slice(0, Math.max(6, 2 * drawn.hosts.length)),
  faults: moving.map((kind, index) => ({ kind, everyMsMean: 5_000 + 2_000 * index })),
  limits: {},
  restored: false,
});

const shapes = {
  /** Hosts are lost and come back; exclusive instances ask for self-stop and for a copy elsewhere. */
  'host-loss': (drawn: Scenario): Scenario => ({
    ...drawn,
    hosts: [...drawn.hosts, ...drawn.hosts, ...drawn.hosts, ...drawn.hosts].slice(0, Math.max(4, drawn.hosts.length)),
    instancesMax: Math.max(12, drawn.instancesMax),
    stormMs: 150_000,
    faults: losses.map((kind, index) => ({ kind, everyMsMean: 8_000 + 2_000 * index })),
    restored: false,
    staysDead: { ...drawn.staysDead, host: true },
    losesHosts: true,
  }),
  /** Workloads are updated all the time, also to what never becomes ready; in every second seed hosts and guests fail as well. */
  rolling: updated,
  /** Instances and their volumes move between hosts that crash, freeze and are cut off, at any step of a move. */
  migrate: (drawn: Scenario): Scenario => ({ ...inTurmoil(drawn), moves: true }),
  /** Hosts are drained while servers, agents and hosts fail; in every second seed only servers do, and workloads stay available. */
  drain: (drawn: Scenario): Scenario =>
    isCalm(drawn)
      ? { ...updated(drawn), controlPlanes: Math.max(2, drawn.controlPlanes), drainsHosts: true }
      : {
          ...drawn,
          hosts: [...drawn.hosts, ...drawn.hosts, ...drawn.hosts].slice(0, Math.max(3, drawn.hosts.length)),
          controlPlanes: Math.max(2, drawn.controlPlanes),
          instancesMax: Math.max(12, drawn.instancesMax),
          stormMs: 120_000,
          betweenCallsMsMean: Math.max(200, drawn.betweenCallsMsMean), // thousands of tasks would wait for closed hosts
          faults: besideDrains.map((kind, index) => ({ kind, everyMsMean: 10_000 + 3_000 * index })),
          restored: false,
          drainsHosts: true,
        },
  /** Instances are resized, on hosts with room for it, while any step of it may be broken off. */
  resize: (drawn: Scenario): Scenario => ({ ...inTurmoil(drawn), resizes: true }),
  /** Guests are booted ahead, for people and for jobs, while servers, agents and hosts fail. */
  warm: (drawn: Scenario): Scenario => ({ ...inTurmoil(drawn), keepsWarm: true }),
  /** Machines are prepared ahead while the servers that do it end, stand still and lose the store. */
  spares: (drawn: Scenario): Scenario => ({
    ...inTurmoil(drawn),
    controlPlanes: Math.max(2, drawn.controlPlanes),
    stormMs: 120_000,
    weather: { ...drawn.weather, stormy: { ...drawn.weather.stormy, store: storeLost(drawn) } },
    faults: leads.map((kind, index) => ({ kind, everyMsMean: 6_000 + 2_000 * index })),
    preparesSpares: true,
  }),
} as const satisfies Record<string, (drawn: Scenario) => Scenario>;

export type ScenarioName = keyof typeof shapes;

export const scenarioNames = Object.keys(shapes);

export function isScenarioName(word: string): word is ScenarioName {
  return Object.hasOwn(shapes, word);
}

export function shaped(drawn: Scenario, name: ScenarioName | undefined): Scenario {
  return name === undefined ? drawn : shapes[name](drawn);
}
