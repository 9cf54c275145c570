import { describe, expect, it } from 'vitest';
import { hostAt, layoutMap } from './layout.ts';

const hosts = (count: number, group = (i: number) => (i % 2 === 0 ? 'a' : 'b')) =>
  Array.from({ length: count }, (_, i) => ({ name: `host-${i}`, group: group(i) }));

describe('the map of the fleet', () => {
  it('gives every host a cell of its own', () => {
    const { cells } = layoutMap(hosts(5_000), 1_000);
    expect(cells).toHaveLength(5_000);
    expect(new Set(cells.map(({ x, y }) => `${x},${y}`)).size).toBe(5_000);
  });

  it('puts groups in order of name, and hosts in order of number', () => {
    const { cells, groups } = layoutMap(hosts(24), 1_000);
    expect(groups.map(({ name, count }) => [name, count])).toEqual([
      ['a', 12],
      ['b', 12],
    ]);
    const [second, tenth] = [cells[2], cells[10]];
    expect((second?.x ?? 0) < (tenth?.x ?? 0) || (second?.y ?? 0) < (tenth?.y ?? 0)).toBe(true);
  });

  it('keeps the others in place when a host of another group comes', () => {
    const before = layoutMap(hosts(10), 1_000);
    const after = layoutMap([...hosts(10), { name: 'host-99', group: 'z' }], 1_000);
    expect(after.cells.slice(0, 10)).toEqual(before.cells);
  });

  it('finds the host at a point, and none between cells', () => {
    const layout = layoutMap(hosts(100), 600);
    for (const { index, x, y } of layout.cells) expect(hostAt(layout, x + 1, y + 1)).toBe(index);
    const first = layout.cells[0];
    expect(hostAt(layout, (first?.x ?? 0) + layout.size + 1, first?.y ?? 0)).toBeUndefined();
    expect(hostAt(layout, 5_000, 5_000)).toBeUndefined();
  });

  it('fits a narrow screen, and an empty fleet', () => {
    expect(layoutMap(hosts(50), 5).cells.every(({ x }) => x === 0)).toBe(true);
    expect(layoutMap([], 300)).toMatchObject({ cells: [], groups: [], height: 0 });
  });
});
