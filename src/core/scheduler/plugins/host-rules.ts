// host-rules: the labels of the host satisfy every host rule of the instance.

import { type HostPlugin, refuse } from '../framework.ts';
import { describeLabelRule, labelOf, labelTest } from '../label-rule.ts';

export const hostRules: HostPlugin = {
  name: 'host-rules',
  summary: "the host's labels match every rule",
  dependsOn: 'host',
  prepare({ terms }, { hosts }) {
    if (!terms.hostRules || terms.hostRules.length === 0) return null;
    const rules = terms.hostRules.map((rule) => ({ rule, holds: labelTest(rule) }));
    return {
      filter(slot) {
        const labels = hosts[slot]?.metadata.labels ?? {};
        for (const { rule, holds } of rules) {
          if (holds(labels)) continue;
          return refuse('LabelMismatch', () => {
            const found = labelOf(labels, rule.key);
            return `it must have ${describeLabelRule(rule)}, and ${found === undefined ? 'has no such label' : `has ${rule.key} = ${found}`}`;
          });
        }
        return null;
      },
    };
  },
};
