// Row `schedule_per_s`: tasks of /schedule, durable and placed when they are answered. Its limit is what the same server takes of creates
// of instances one by one (`durable_single_per_s`), measured in turn with it.

import { type Emit, median } from './row.ts';
import { runSubmit } from './submit.ts';

const rounds = 3;

export async function measureSchedule(emit: Emit): Promise<void> {
  const [schedules, singles]: [number[], number[]] = [[], []];
  await runSubmit(() => {}, {
    patterns: Array.from({ length: rounds }, () => ['single', 'schedule'] as const).flat(),
    told({ schedulePerSecond, singlePerSecond }) {
      if (schedulePerSecond !== undefined) schedules.push(schedulePerSecond);
      if (singlePerSecond !== undefined) singles.push(singlePerSecond);
    },
  });
  const [value, limit] = [median(schedules), median(singles)];
  const goal = 0.9 * limit;
  emit({
    suite: 'edges',
    name: 'schedule_per_s',
    value,
    unit: '1/s',
    better: 'higher',
    goal,
    limit,
    ratio: value / limit,
  });
}
