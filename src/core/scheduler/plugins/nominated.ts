// nominated: room reserved for a pending instance is given only to instances of higher priority. Room beyond the
// reservation is free for all.

import { type GroupPlugin, refuse } from '../framework.ts';

export const nominated: GroupPlugin = {
  name: 'nominated',
  summary: 'hosts reserved for a waiting instance are not used by others',
  dependsOn: 'group',
  prepare({ asker, priority = 0, assigned }, fleet) {
    const { nominations } = fleet;
    if (nominations.size === 0) return null;
    return {
      filter(slot) {
        for (const nominee of nominations.on(fleet.names[slot] ?? '')) {
          if (nominee.id === asker || nominee.priority < priority) continue;
          for (const resourceClass in nominee.assigned) {
            const asked = assigned[resourceClass] ?? 0;
            const column = fleet.column(resourceClass);
            if (asked === 0 || !column) continue;
            const free = column.capacity(slot) - column.used(slot);
            if (asked > free - (nominee.assigned[resourceClass] ?? 0))
              return refuse(
                'Nominated',
                () => `it is reserved for ${nominee.name}, which waits for more of its resources`,
              );
          }
        }
        return null;
      },
    };
  },
};
