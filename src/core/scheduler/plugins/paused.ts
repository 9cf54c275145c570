// paused: an operator stopped new placements on the host, or drains it.

import { isDraining } from '../../state/conditions.ts';
import { type HostPlugin, refuse } from '../framework.ts';

export const paused: HostPlugin = {
  name: 'paused',
  summary: 'no operator has paused or drains the host',
  dependsOn: 'host',
  prepare: (_request, { hosts, names }) => ({
    filter: (slot) =>
      hosts[slot]?.spec.paused
        ? refuse('HostPaused', () => `it is paused; "berth host resume ${names[slot]}" opens it`)
        : isDraining(hosts[slot])
          ? refuse('HostDraining', () => `it is drained; "berth host drain ${names[slot]} --cancel" opens it`)
          : null,
  }),
};
