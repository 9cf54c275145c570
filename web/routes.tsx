// The pages and their addresses. Each is loaded when it is opened.

import { type ComponentType, lazy, type ReactNode, Suspense } from 'react';
import { createBrowserRouter, RouterProvider } from 'react-router';
import type { WhoAmI } from '../src/api/routes/access.ts';
import { Page } from './parts/page.tsx';
import { Shell } from './parts/shell.tsx';
import { Loading } from './parts/standing.tsx';
import { base, paths } from './paths.ts';

const Fleet = lazy(async () => ({ default: (await import('./pages/fleet/fleet.tsx')).FleetPage }));
const Pending = lazy(async () => ({ default: (await import('./pages/pending.tsx')).PendingPage }));
const Plans = lazy(async () => ({ default: (await import('./pages/plans/plans.tsx')).PlansPage }));
const Audit = lazy(async () => ({ default: (await import('./pages/audit/audit.tsx')).AuditPage }));
const Instance = lazy(async () => ({ default: (await import('./pages/instance/instance.tsx')).InstancePage }));
const Host = lazy(async () => ({ default: (await import('./pages/host/host.tsx')).HostPage }));
const Job = lazy(async () => ({ default: (await import('./pages/jobs/job.tsx')).JobPage }));
const ResourceList = lazy(async () => ({ default: (await import('./pages/resource/list.tsx')).ListPage }));
const Create = lazy(async () => ({ default: (await import('./pages/resource/create.tsx')).CreatePage }));
const ResourceDetail = lazy(async () => ({ default: (await import('./pages/resource/detail.tsx')).DetailPage }));

export function Pages({ who, onLeft }: { readonly who: WhoAmI; readonly onLeft: () => void }): ReactNode {
  const router = routerFor(who, onLeft);
  return <RouterProvider router={router} />;
}

let router: ReturnType<typeof createBrowserRouter> | undefined;

function routerFor(who: WhoAmI, onLeft: () => void): ReturnType<typeof createBrowserRouter> {
  router ??= createBrowserRouter(
    [
      {
        element: <Shell who={who} onLeft={onLeft} />,
        children: [
          { path: paths.fleet, element: shown(Fleet) },
          { path: paths.pending, element: shown(Pending) },
          { path: paths.plans, element: shown(() => <Plans who={who} />) },
          { path: paths.audit, element: shown(Audit) },
          { path: '/create/:plural', element: shown(Create) },
          { path: '/instances/:name', element: shown(Instance) },
          { path: '/hosts/:name', element: shown(Host) },
          { path: '/jobs/:name', element: shown(Job) },
          { path: '/:plural', element: shown(ResourceList) },
          { path: '/:plural/:name', element: shown(ResourceDetail) },
          { path: '*', element: <NotHere /> },
        ],
      },
    ],
    { basename: base },
  );
  return router;
}

function shown(Content: ComponentType): ReactNode {
  return (
    <Suspense fallback={<Loading label="Loading the page" />}>
      <Content />
    </Suspense>
  );
}

export function NotHere(): ReactNode {
  return <Page title="There is no such page">The address may be mistyped, or of another version.</Page>;
}
