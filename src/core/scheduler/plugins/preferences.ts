// preferences: points for hosts with, or without, a label or trait. The points add up, from -100 to 100 in all.

import type { Preference } from '../../../api/resources/host-rules.ts';
import type { Fleet } from '../fleet.ts';
import type { HostPlugin } from '../framework.ts';
import { labelTest } from '../label-rule.ts';
import type { Slot } from '../engine/slot.ts';

export const preferences: HostPlugin = {
  name: 'preferences',
  summary: 'the preferences of the instance, by weight',
  dependsOn: 'host',
  prepare({ terms }, fleet) {
    if (!terms.preferences || terms.preferences.length === 0) return null;
    const wishes = terms.preferences.map((preference) => ({
      weight: preference.weight,
      holds: testOf(preference, fleet),
    }));
    return {
      /** From 0 (everything unwanted) over 50 to 100. Profiles weight it by two, so that a weight of 1 is one point. */
      score(slot) {
        let points = 0;
        for (const { weight, holds } of wishes) if (holds(slot)) points += weight;
        return (Math.max(-100, Math.min(100, points)) + 100) / 2;
      },
    };
  },
};

function testOf({ key, operator, values, trait }: Preference, { hosts, trees }: Fleet): (slot: Slot) => boolean {
  if (trait !== undefined) return (slot) => trees[slot]?.[0]?.provider.traits.includes(trait) ?? false;
  const holds = labelTest({ key: key ?? '', operator: operator ?? 'Exists', values });
  return (slot) => holds(hosts[slot]?.metadata.labels ?? {});
}
