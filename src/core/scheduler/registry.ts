// The scheduler's rules. A new one is a file in plugins/ and a line here; within a list, those come first that often refuse and cost little.

import type { GroupPlugin, HostPlugin, Plugin, RoomPlugin } from './framework.ts';
import { driver } from './plugins/driver.ts';
import { fit } from './plugins/fit.ts';
import { image } from './plugins/image.ts';
import { labels } from './plugins/labels.ts';
import { online } from './plugins/online.ts';
import { paused } from './plugins/paused.ts';
import { pool } from './plugins/pool.ts';
import { idleness, utilization } from './plugins/utilization.ts';

export const hostPlugins: readonly HostPlugin[] = [online, paused, pool, labels, image, driver];
export const roomPlugins: readonly RoomPlugin[] = [fit, utilization, idleness];
export const groupPlugins: readonly GroupPlugin[] = [];
export const plugins: readonly Plugin[] = [...hostPlugins, ...roomPlugins, ...groupPlugins];
