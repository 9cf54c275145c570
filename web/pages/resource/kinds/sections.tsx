// The first section of a resource's page, for kinds whose YAML alone is not enough.

import { lazy, type ReactNode, Suspense } from 'react';
import type { AnyResource } from '../../../../src/api/resources/index.ts';
import { Loading } from '../../../parts/standing.tsx';

const WorkloadOverview = lazy(async () => ({ default: (await import('./workload-overview.tsx')).WorkloadOverview }));
const Deliveries = lazy(async () => ({ default: (await import('./deliveries.tsx')).Deliveries }));
const PoolOverview = lazy(async () => ({ default: (await import('./pool-overview.tsx')).PoolOverview }));
const SecretKeys = lazy(async () => ({ default: (await import('./secret-keys.tsx')).SecretKeys }));

export function hasSection({ kind }: AnyResource): boolean {
  return sectionOf({ kind } as AnyResource) !== null; // only its kind is looked at
}

export function Section({ resource }: { readonly resource: AnyResource }): ReactNode {
  return <Suspense fallback={<Loading label="Loading" />}>{sectionOf(resource)}</Suspense>;
}

function sectionOf(resource: AnyResource): ReactNode {
  switch (resource.kind) {
    case 'workload':
      return <WorkloadOverview workload={resource} />;
    case 'warmPool':
      return <PoolOverview pool={resource} />;
    case 'webhook':
      return <Deliveries webhook={resource} />;
    case 'secret':
      return <SecretKeys secret={resource} />;
    default:
      return null;
  }
}
