// paused: an operator stopped new placements on the host.

import { type HostPlugin, refuse } from '../framework.ts';

export const paused: HostPlugin = {
  name: 'paused',
  summary: 'no operator has paused the host',
  dependsOn: 'host',
  prepare: (_request, { hosts, names }) => ({
    filter: (slot) =>
      hosts[slot]?.spec.paused
        ? refuse('HostPaused', () => `it is paused; "berth host resume ${names[slot]}" opens it`)
        : null,
  }),
};
