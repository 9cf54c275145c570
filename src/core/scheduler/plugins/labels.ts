// labels: the host has every label that the instance requires.

import { type HostPlugin, refuse } from '../framework.ts';

export const labels: HostPlugin = {
  name: 'labels',
  summary: 'the host has every requested label',
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    const wanted = Object.entries(terms.hostLabels ?? {});
    if (wanted.length === 0) return null;
    return {
      filter(slot) {
        const borne = hosts[slot]?.metadata.labels ?? {};
        for (const [key, value] of wanted) {
          const found = Object.hasOwn(borne, key) ? borne[key] : undefined;
          if (found === value) continue;
          return refuse(
            'LabelMismatch',
            found === undefined ? `it has no label ${key}=${value}` : `its label ${key} is ${found}, not ${value}`,
          );
        }
        return null;
      },
    };
  },
};
