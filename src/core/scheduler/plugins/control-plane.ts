// control-plane: hosts on the machine of a control plane take no instances when its operator has configured that.

import { type HostPlugin, refuse } from '../framework.ts';

export const controlPlane: HostPlugin = {
  name: 'control-plane',
  summary: 'the host does not run the control plane, or may take instances anyway',
  dependsOn: 'host',
  prepare: (_request, { hosts }) => ({
    filter(slot) {
      const host = hosts[slot];
      const excluded = host?.spec.controlPlane ?? host?.status.controlPlane === 'excluded';
      if (!excluded) return null;
      return refuse(
        'ControlPlaneHost',
        'the control plane runs on it, and its hosts are excluded (excludeControlPlaneHosts)',
      );
    },
  }),
};
