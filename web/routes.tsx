// The pages and their addresses. Each is loaded when it is opened; the first one while it is found out who looks.

import type { ComponentType, ReactNode } from 'react';
import { createBrowserRouter, matchRoutes, RouterProvider } from 'react-router';
import type { WhoAmI } from '../src/api/routes/access.ts';
import { Page } from './parts/page.tsx';
import { Shell } from './parts/shell.tsx';
import { base, paths } from './paths.ts';

type PageOf = ComponentType<{ readonly who: WhoAmI }>;

interface PageRoute {
  readonly path: string;
  readonly load: () => Promise<PageOf>;
}

const pages: PageRoute[] = [
  { path: paths.fleet, load: async () => (await import('./pages/fleet/fleet.tsx')).FleetPage },
  { path: paths.pending, load: async () => (await import('./pages/pending.tsx')).PendingPage },
  { path: paths.plans, load: async () => (await import('./pages/plans/plans.tsx')).PlansPage },
  { path: paths.audit, load: async () => (await import('./pages/audit/audit.tsx')).AuditPage },
  { path: '/create/:plural', load: async () => (await import('./pages/resource/create.tsx')).CreatePage },
  { path: '/instances/:name', load: async () => (await import('./pages/instance/instance.tsx')).InstancePage },
  { path: '/hosts/:name', load: async () => (await import('./pages/host/host.tsx')).HostPage },
  { path: '/jobs/:name', load: async () => (await import('./pages/jobs/job.tsx')).JobPage },
  { path: '/:plural', load: async () => (await import('./pages/resource/list.tsx')).ListPage },
  { path: '/:plural/:name', load: async () => (await import('./pages/resource/detail.tsx')).DetailPage },
];

// Asked for at once: the router, which asks again, does not exist before the answer about who looks.
void matchRoutes(pages, location, base)
  ?.at(-1)
  ?.route.load()
  .catch(() => undefined); // the router says that it failed

export function Pages({ who, onLeft }: { readonly who: WhoAmI; readonly onLeft: () => void }): ReactNode {
  const router = routerFor(who, onLeft);
  return <RouterProvider router={router} />;
}

let router: ReturnType<typeof createBrowserRouter> | undefined;

/** Pages are loaded by the router, before it shows them: a fallback of React stays for 300 ms once it is shown. */
function routerFor(who: WhoAmI, onLeft: () => void): ReturnType<typeof createBrowserRouter> {
  router ??= createBrowserRouter(
    [
      {
        element: <Shell who={who} onLeft={onLeft} />,
        hydrateFallbackElement: <></>,
        children: [
          ...pages.map(({ path, load }) => ({
            path,
            lazy: async () => {
              const Content = await load();
              return { element: <Content who={who} /> };
            },
          })),
          { path: '*', element: <NotHere /> },
        ],
      },
    ],
    { basename: base },
  );
  return router;
}

export function NotHere(): ReactNode {
  return <Page title="There is no such page">The address may be mistyped, or of another version.</Page>;
}
