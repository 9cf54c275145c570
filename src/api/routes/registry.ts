// The registry of all routes of the server. Server, client and documentation are built from it.

import { resourceDefinitions } from '../resources/index.ts';
import { accessRoutes } from './access.ts';
import { agentRoutes } from './agent.ts';
import { auditLogRoutes } from './audit-log.ts';
import { capacityRoutes } from './capacity.ts';
import { docsPageRoutes } from './docs-page.ts';
import { hookRoutes } from './hooks.ts';
import { hostPlanRoutes } from './host-plans.ts';
import { hostRollRoutes } from './host-roll.ts';
import { migrationRoutes } from './migrations.ts';
import { resizeRoutes } from './resizes.ts';
import { hostRoutes } from './hosts.ts';
import { imageRoutes } from './images.ts';
import { instanceRoutes } from './instances.ts';
import { jobRoutes, runRoutes } from './jobs.ts';
import { joinRoutes } from './joining.ts';
import { deadLetterRoutes, jobRequestRoutes } from './job-requests.ts';
import { browserLoginRoutes, loginRoutes } from './login.ts';
import { mcpRoutes } from './mcp.ts';
import { processRoutes } from './process.ts';
import { routesOfKind } from './resources.ts';
import type { RouteDefinition } from './route.ts';
import { jobTemplateRoutes } from './job-templates.ts';
import { warmPoolRoutes } from './warm-pools.ts';
import { workloadRoutes } from './workloads.ts';
import { sessionRoutes } from './session.ts';
import { spareRoutes } from './spares.ts';
import { scheduleRoutes } from './schedule.ts';
import { inventoryRoutes } from './inventories.ts';
import { webhookRoutes } from './webhooks.ts';
import { storeRoutes } from './store.ts';
import { watchRoutes } from './watch.ts';

export const routes: readonly RouteDefinition[] = [
  ...Object.values(resourceDefinitions).flatMap(({ kind }) => routesOfKind(kind)),
  ...Object.values(instanceRoutes),
  ...Object.values(hostRoutes),
  ...Object.values(hostPlanRoutes),
  ...Object.values(hostRollRoutes),
  ...Object.values(migrationRoutes),
  ...Object.values(resizeRoutes),
  ...Object.values(joinRoutes),
  ...Object.values(jobRoutes),
  ...Object.values(runRoutes),
  ...Object.values(hookRoutes),
  ...Object.values(jobRequestRoutes),
  ...Object.values(deadLetterRoutes),
  ...Object.values(scheduleRoutes),
  ...Object.values(spareRoutes),
  ...Object.values(workloadRoutes),
  ...Object.values(jobTemplateRoutes),
  ...Object.values(warmPoolRoutes),
  ...Object.values(webhookRoutes),
  ...Object.values(inventoryRoutes),
  ...Object.values(imageRoutes),
  ...Object.values(capacityRoutes),
  ...Object.values(watchRoutes),
  ...Object.values(storeRoutes),
  ...Object.values(auditLogRoutes),
  ...Object.values(accessRoutes),
  ...Object.values(sessionRoutes),
  ...Object.values(agentRoutes),
  ...Object.values(loginRoutes),
  ...Object.values(browserLoginRoutes),
  ...Object.values(mcpRoutes),
  ...Object.values(processRoutes),
  ...Object.values(docsPageRoutes),
];
