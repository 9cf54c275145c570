// The scheduler's rules. A new one is a file in plugins/ and a line here; within a list, rules that often refuse and
// cost little come first.

import type { GroupPlugin, HostPlugin, Plugin, RoomPlugin } from './framework.ts';
import { affinity } from './plugins/neighbours/affinity.ts';
import { aggregates } from './plugins/providers/aggregates.ts';
import { antiAffinity } from './plugins/neighbours/anti-affinity.ts';
import { avoidHosts } from './plugins/avoid-hosts.ts';
import { cpuUtilization, guestCount, memoryUtilization } from './plugins/best-fit.ts';
import { controlPlane } from './plugins/control-plane.ts';
import { dedicated } from './plugins/dedicated.ts';
import { driver } from './plugins/guests/driver.ts';
import { fit } from './plugins/fit.ts';
import { gpuFragmentation } from './plugins/gpu-fragmentation.ts';
import { hostRules } from './plugins/host-rules.ts';
import { image } from './plugins/guests/image.ts';
import { imageLocality } from './plugins/guests/image-locality.ts';
import { inTree } from './plugins/providers/in-tree.ts';
import { labels } from './plugins/labels.ts';
import { limit } from './plugins/limit.ts';
import { nominated } from './plugins/nominated.ts';
import { online } from './plugins/online.ts';
import { outside } from './plugins/outside.ts';
import { paused } from './plugins/paused.ts';
import { placementGroup } from './plugins/neighbours/placement-group.ts';
import { pool } from './plugins/pool.ts';
import { ports } from './plugins/ports.ts';
import { preferences } from './plugins/preferences.ts';
import { quota } from './plugins/quota.ts';
import { spread } from './plugins/neighbours/spread.ts';
import { softTaints, taints } from './plugins/taints.ts';
import { tightFit } from './plugins/tight-fit.ts';
import { traits } from './plugins/providers/traits.ts';
import { unknownGuest } from './plugins/unknown-guest.ts';
import { idleness, utilization } from './plugins/utilization.ts';
import { offers } from './plugins/guests/offers.ts';
import { runs } from './plugins/guests/runs.ts';
import { volumes } from './plugins/guests/volumes.ts';

export const hostPlugins: readonly HostPlugin[] = [
  online,
  paused,
  outside,
  controlPlane,
  dedicated,
  pool,
  taints,
  labels,
  hostRules,
  traits,
  aggregates,
  inTree,
  image,
  driver,
  volumes,
  runs,
  offers,
  preferences,
  softTaints,
  avoidHosts,
  imageLocality,
];
export const roomPlugins: readonly RoomPlugin[] = [
  quota,
  ports,
  fit,
  utilization,
  idleness,
  cpuUtilization,
  memoryUtilization,
  guestCount,
  gpuFragmentation,
  tightFit,
];
export const groupPlugins: readonly GroupPlugin[] = [
  nominated,
  unknownGuest,
  placementGroup,
  antiAffinity,
  limit,
  affinity,
  spread,
];
export const plugins: readonly Plugin[] = [...hostPlugins, ...roomPlugins, ...groupPlugins];
