// What `zoneadm list -cp` prints, read: pure. One line a zone, fields between colons, later fields may be added (zoneadm(8)).

export interface Zone {
  readonly name: string;
  readonly state: string;
  readonly path: string;
}
export type Zones = ReadonlyMap<string, Zone>;

/** Lines that are none are passed over: a warning of zoneadm may stand between them. */
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

/** States of a zone in which nothing of it can run (zones(7)); in any other, also one we do not know, it may. */
const idleStates: readonly string[] = ['configured', 'incomplete', 'unavailable', 'installed'];

export function mayRun(zone: Zone | undefined): boolean {
  return zone !== undefined && !idleStates.includes(zone.state);
}
