// dedicated: instances that request a dedicated host are placed on dedicated hosts only, other instances never are, and
// a host dedicated to one project takes instances of that project only.

import { type HostPlugin, refuse } from '../framework.ts';

export const dedicated: HostPlugin = {
  name: 'dedicated',
  summary: 'dedicated hosts are for instances that request one, or for one project',
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    const { dedicated: wanted, project } = terms;
    return {
      filter(slot) {
        const spec = hosts[slot]?.spec;
        const owner = spec?.dedicatedTo;
        if (owner !== undefined && owner !== project)
          return refuse('HostDedicated', `it is dedicated to project ${owner}`);
        if (spec?.dedicated && !wanted)
          return refuse('HostDedicated', 'it is dedicated, and the instance does not request a dedicated host');
        if (wanted && !spec?.dedicated && owner === undefined)
          return refuse('HostNotDedicated', 'the instance requests a dedicated host, which it is not');
        return null;
      },
    };
  },
};
