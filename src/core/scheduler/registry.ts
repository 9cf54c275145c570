// The scheduler's rules and profiles. A new rule is a file in plugins/ and a line here; cheap and often-refusing ones first.

import type { Plugin, Profile } from './framework.ts';
import { driver } from './plugins/driver.ts';
import { fit } from './plugins/fit.ts';
import { image } from './plugins/image.ts';
import { labels } from './plugins/labels.ts';
import { online } from './plugins/online.ts';
import { paused } from './plugins/paused.ts';
import { pool } from './plugins/pool.ts';
import { idleness, utilization } from './plugins/utilization.ts';
import type { ProfileName } from './request.ts';

export const plugins: readonly Plugin[] = [online, paused, pool, labels, image, driver, fit, utilization, idleness];

export const profileByName: Readonly<Record<ProfileName, Profile>> = {
  'optimize-utilization': { name: 'optimize-utilization', weights: { utilization: 1 } },
  'distribute-load': { name: 'distribute-load', weights: { idleness: 1 } },
};
