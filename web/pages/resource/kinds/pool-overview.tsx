// A warm pool: the number of waiting guests, and how many claims found one.

import type { ReactNode } from 'react';
import { hitRateOf, type WarmPool } from '../../../../src/api/resources/warm-pool.ts';
import { FactTable } from '../../../parts/fact-table.tsx';
import { Text } from '../../../parts/text.tsx';
import { spanText } from '../../../parts/units.ts';

export function PoolOverview({ pool: { spec, status } }: { readonly pool: WarmPool }): ReactNode {
  const { wanted, guests, ready, hits, misses, conditions } = status;
  const rate = hitRateOf(status);
  const windows = spec.schedule?.windows.map(({ from, to, size }) => `${size} from ${from} to ${to}`) ?? [];
  return (
    <FactTable
      facts={[
        ['Image', <Text key="image">{spec.template.spec.image ?? '–'}</Text>],
        [
          'Guests',
          `${wanted} wanted, ${guests} there, ${ready} ready${spec.state === 'suspended' ? ', suspended' : ''}`,
        ],
        [
          'Claims',
          rate === undefined
            ? 'none yet'
            : `${hits} of ${hits + misses} found a guest that was ready (${Math.round(100 * rate)} %)`,
        ],
        ['For jobs', spec.forJobs ? 'yes' : 'no'],
        ['Schedule', <Text key="schedule">{windows.join('; ') || 'none'}</Text>],
        ['Replaced after', spec.maxAgeMs === undefined ? 'never' : spanText(spec.maxAgeMs)],
        ['State', <Text key="state">{conditions.map(({ message }) => message).join('; ') || '–'}</Text>],
      ]}
    />
  );
}
