// Parses the output of `zoneadm list -cp`: pure. One line per zone, fields separated by colons, further fields may follow
// (zoneadm(8)).

export interface Zone {
  readonly name: string;
  readonly state: string;
  readonly path: string;
}
export type Zones = ReadonlyMap<string, Zone>;

/** Other lines are skipped: zoneadm may print warnings between them. */
export function parseZoneList(text: string): Zones {
  const zones = new Map<string, Zone>();
  for (const line of text.split('\n')) {
    // A colon within a field has a backslash before it.
    const [id, name, state, path] = line.split(/(?<!\\):/).map((field) => field.replaceAll('\\:', ':'));
    if (id === undefined || !/^(-|\d+)$/.test(id) || name === undefined || state === undefined || path === undefined)
      continue;
    zones.set(name, { name, state, path });
  }
  return zones;
}

/** States in which no process of a zone can run (zones(7)); in any other state, also an unknown one, it may run. */
const idleStates: readonly string[] = ['configured', 'incomplete', 'unavailable', 'installed'];

export function mayRun(zone: Zone | undefined): boolean {
  return zone !== undefined && !idleStates.includes(zone.state);
}
