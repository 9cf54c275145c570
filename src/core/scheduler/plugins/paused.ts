// paused: an operator wants nothing new here.

import { fits, type Plugin, refuse } from '../framework.ts';

export const paused: Plugin = {
  name: 'paused',
  filter: ({ host }) =>
    host.value.spec.paused
      ? refuse('HostPaused', `it is paused; "berth host resume ${host.value.metadata.name}" opens it`)
      : fits,
};
