import { expect, it } from 'vitest';
import { runBulk } from './run-bulk.ts';

it('does each once, four at a time, and names those that failed', async () => {
  let [running, most] = [0, 0];
  const told: number[] = [];
  const act = async (item: number): Promise<void> => {
    most = Math.max(most, (running += 1));
    await Promise.resolve();
    running -= 1;
    if (item % 5 === 0) throw new Error(`no ${item}`);
  };
  const items = Array.from({ length: 12 }, (_, i) => i + 1);
  const result = await runBulk(items, { nameOf: String, act }, ({ done, failures }) =>
    told.push(done + failures.length),
  );
  expect(result).toEqual({
    done: 10,
    failures: [
      { name: '5', message: 'no 5' },
      { name: '10', message: 'no 10' },
    ],
  });
  expect(told).toEqual(items);
  expect(most).toBe(4);
});
