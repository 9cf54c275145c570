// Where each host stands on the map: groups side by side, hosts in a grid within them. Pure, and in a stable order, so that no cell jumps
// when something changes.

export interface MapHost {
  readonly name: string;
  readonly group: string;
}

export interface Cell {
  readonly index: number;
  readonly x: number;
  readonly y: number;
}

export interface GroupBox {
  readonly name: string;
  readonly count: number;
  readonly x: number;
  readonly y: number;
}

export interface MapLayout {
  /** In the order of the hosts that were given. */
  readonly cells: readonly Cell[];
  readonly groups: readonly GroupBox[];
  /** Of a cell, without the gap. */
  readonly size: number;
  readonly pitch: number;
  readonly height: number;
}

const heading = 22;
const gap = 2;
const between = 14;

/** Cells as large as fit about `areaPx` in all, between 6 and 28 pixels. */
export function layoutMap(hosts: readonly MapHost[], widthPx: number, areaPx = 420_000): MapLayout {
  const pitch = Math.max(8, Math.min(30, Math.floor(Math.sqrt(areaPx / Math.max(1, hosts.length)))));
  const columns = Math.max(1, Math.floor(widthPx / pitch));
  const byGroup = new Map<string, number[]>();
  for (const [index, { group }] of hosts.entries()) {
    const members = byGroup.get(group);
    if (members) members.push(index);
    else byGroup.set(group, [index]);
  }
  const cells: Cell[] = [];
  const groups: GroupBox[] = [];
  let y = 0;
  for (const name of [...byGroup.keys()].sort()) {
    const members = (byGroup.get(name) ?? []).sort((a, b) => compare(hosts[a]?.name ?? '', hosts[b]?.name ?? ''));
    groups.push({ name, count: members.length, x: 0, y });
    y += heading;
    for (const [at, index] of members.entries())
      cells[index] = { index, x: (at % columns) * pitch, y: y + Math.floor(at / columns) * pitch };
    y += Math.ceil(members.length / columns) * pitch + between;
  }
  return { cells, groups, size: pitch - gap, pitch, height: y };
}

/** Which host is at this point; undefined: none. */
export function hostAt({ cells, size }: MapLayout, x: number, y: number): number | undefined {
  return cells.find((cell) => x >= cell.x && x < cell.x + size && y >= cell.y && y < cell.y + size)?.index;
}

/** `host-2` before `host-10`. */
const compare = new Intl.Collator('en', { numeric: true }).compare;
