// labels: the host bears every label that the instance asks of it.

import { fits, type Plugin, refuse } from '../framework.ts';

export const labels: Plugin = {
  name: 'labels',
  filter({ host }, request) {
    for (const [key, wanted] of Object.entries(request.hostLabels)) {
      const found = Object.hasOwn(host.value.metadata.labels, key) ? host.value.metadata.labels[key] : undefined;
      if (found !== wanted) {
        return refuse(
          'LabelMismatch',
          found === undefined ? `it has no label ${key}=${wanted}` : `its label ${key} is ${found}, not ${wanted}`,
        );
      }
    }
    return fits;
  },
};
