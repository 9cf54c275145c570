// Narrowing: the same run with less in it: fewer hosts, control planes and tenants, fewer kinds of misfortune, a shorter storm. What the
// seed drew is otherwise left as it is, so that a failure mostly stays the failure it was.

import { faultKinds } from '../faults/registry.ts';
import { neverMs, type Scenario } from '../scenario.ts';
import { type ScenarioName, shaped } from '../named-scenarios.ts';
import { kindOf } from '../unusual.ts';
import { drawWeather, type Weather } from '../world/weather.ts';
import { buggifyPlaces } from '../../base/buggify.ts';
import { seededPrng } from '../../base/prng.ts';

export interface Narrowing {
  /** What the seed draws is bent towards this subject first. */
  readonly scenario?: ScenarioName;
  /** Kinds of faults, of bad weather as `store-unknown`, unusual places as `unusual-look-late`, and `restored`, that do not happen. */
  readonly without?: readonly string[];
  /** Kinds that happen, and often, whatever the seed drew. */
  readonly with?: readonly string[];
  readonly hosts?: number;
  readonly servers?: number;
  readonly tenants?: number;
  readonly stormMs?: number;
}

/** A backup is restored in the end. */
const restored = 'restored';
const oftenMs = 4000;
/** In thousandths. */
const oftenRate = 100;

export function narrowed(drawn: Scenario, narrowing: Narrowing = {}): Scenario {
  const scenario = shaped(drawn, narrowing.scenario);
  const { hosts, servers, tenants, stormMs } = narrowing;
  const without = new Set(narrowing.without);
  const often = new Set(narrowing.with);
  const faults = scenario.faults.map((fault) => ({
    ...fault,
    everyMsMean: without.has(fault.kind) ? neverMs : often.has(fault.kind) ? oftenMs : fault.everyMsMean,
  }));
  const more = faultKinds.filter((kind) => often.has(kind) && !faults.some((fault) => fault.kind === kind));
  const { staysDead } = scenario;
  const left = scenario.hosts.slice(0, hosts);
  const controlPlanes = Math.min(scenario.controlPlanes, servers ?? scenario.controlPlanes);
  return {
    ...scenario,
    hosts: left,
    controlPlanes,
    // The last one is mended, or nothing could come to rest.
    staysDead: { controlPlane: staysDead.controlPlane && controlPlanes > 1, host: staysDead.host && left.length > 1 },
    tenants: Math.min(scenario.tenants, tenants ?? scenario.tenants),
    stormMs: Math.min(scenario.stormMs, stormMs ?? scenario.stormMs),
    faults: [...faults, ...more.map((kind) => ({ kind, everyMsMean: oftenMs }))],
    restored: !without.has(restored) && (often.has(restored) || scenario.restored),
    weather: { ...scenario.weather, stormy: changed(scenario.weather.stormy, { without, often }) },
    unusual: changedPlaces(scenario.unusual, { without, often }),
  };
}

/** The kinds of misfortune that a scenario has. */
export function misfortunesOf({ faults, ...scenario }: Scenario): string[] {
  const kinds = faults.flatMap(({ kind, everyMsMean }) => (everyMsMean === neverMs ? [] : [kind as string])); // a kind is a word
  return [...kinds, ...(scenario.restored ? [restored] : []), ...chancesOf(scenario)];
}

/** Those of them that befall calls. */
export function chancesOf({ weather, unusual }: Pick<Scenario, 'weather' | 'unusual'>): string[] {
  const badWeather = ratesOf(weather.stormy).flatMap(({ word, rate }) => (rate > 0 ? [word] : []));
  return [...badWeather, ...[...unusual.keys()].map(kindOf)];
}

/** All that `--with` and `--without` may name. */
export function knownMisfortunes(): string[] {
  const weather = ratesOf(drawWeather(seededPrng(0)).stormy).map(({ word }) => word);
  return [...faultKinds, restored, ...weather, ...buggifyPlaces.map(kindOf)];
}

/** As flags of the command that runs it. */
export function flagsOf({
  scenario,
  with: often = [],
  without = [],
  hosts,
  servers,
  tenants,
  stormMs,
}: Narrowing): string {
  return [
    scenario === undefined ? '' : ` --scenario ${scenario}`,
    often.length > 0 ? ` --with ${often.join(',')}` : '',
    without.length > 0 ? ` --without ${without.join(',')}` : '',
    hosts === undefined ? '' : ` --hosts ${hosts}`,
    servers === undefined ? '' : ` --servers ${servers}`,
    tenants === undefined ? '' : ` --tenants ${tenants}`,
    stormMs === undefined ? '' : ` --storm ${stormMs / 1000}`,
  ].join('');
}

interface Change {
  readonly without: ReadonlySet<string>;
  readonly often: ReadonlySet<string>;
}

function changedPlaces(rates: Scenario['unusual'], { without, often }: Change): Scenario['unusual'] {
  const changed = new Map([...rates].filter(([place]) => !without.has(kindOf(place))));
  for (const place of buggifyPlaces)
    if (often.has(kindOf(place))) changed.set(place, Math.max(rates.get(place) ?? 0, oftenRate));
  return changed;
}

function changed(weather: Weather, { without, often }: Change): Weather {
  const parts = Object.entries(weather).map(([part, values]) => [
    part,
    Object.fromEntries(
      Object.entries<number>(values).map(([name, value]) => {
        const word = `${part}-${name}`;
        return [name, without.has(word) ? 0 : often.has(word) ? Math.max(value, oftenRate) : value];
      }),
    ),
  ]);
  return Object.fromEntries(parts) as Weather; // the same parts and names as before
}

/** What has a rate; delays are always there. */
function ratesOf(weather: Weather): { readonly word: string; readonly rate: number }[] {
  return Object.entries(weather).flatMap(([part, values]) =>
    Object.entries<number>(values).flatMap(([name, rate]) =>
      /Ms(Min|Mean|Max)$/.test(name) ? [] : [{ word: `${part}-${name}`, rate }],
    ),
  );
}
