// utilization: how full the host would be, 100 for full. Packing weights it high; spreading weights its mirror
// `idleness`.

import type { Amounts } from '../../../api/resources/metadata.ts';
import type { Fleet } from '../fleet.ts';
import type { RoomPlugin } from '../framework.ts';
import type { Slot } from '../engine/slot.ts';

export const utilization: RoomPlugin = {
  name: 'utilization',
  summary: 'how full the host would be: fuller is better',
  dependsOn: 'room',
  prepare: ({ assigned }, fleet) => ({ score: fullnessOf(assigned, fleet) }),
};

export const idleness: RoomPlugin = {
  name: 'idleness',
  summary: 'how empty the host would be: emptier is better',
  dependsOn: 'room',
  prepare({ assigned }, fleet) {
    const fullness = fullnessOf(assigned, fleet);
    return { score: (slot) => 100 - fullness(slot) };
  },
};

/** Mean share in use over the requested classes after the placement, in percent. */
function fullnessOf(amounts: Amounts, fleet: Fleet): (slot: Slot) => number {
  const asked = Object.entries(amounts).flatMap(([resourceClass, amount]) => {
    const column = fleet.column(resourceClass);
    return column ? [{ column, amount }] : [];
  });
  return (slot) => {
    let sum = 0;
    let classes = 0;
    for (const { column, amount } of asked) {
      const all = column.capacity(slot);
      if (all === 0) continue;
      sum += Math.min(1, (column.used(slot) + amount) / all);
      classes += 1;
    }
    return classes === 0 ? 0 : (100 * sum) / classes;
  };
}
