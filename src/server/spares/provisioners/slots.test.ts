import { expect, it } from 'vitest';
import { Slots } from './slots.ts';

const { signal } = new AbortController();

it('lets only as many in as there are slots, in order', async () => {
  const slots = new Slots(1);
  const entered: string[] = [];
  const enter = async (name: string): Promise<() => void> => {
    const leave = await slots.take(signal);
    entered.push(name);
    return leave;
  };
  const first = await enter('a');
  const [second, third] = [enter('b'), enter('c')];
  expect(entered).toEqual(['a']);
  first();
  (await second)();
  await third;
  expect(entered).toEqual(['a', 'b', 'c']);
});

it('counts what runs already over the limit', async () => {
  const slots = new Slots(1);
  const leaves = [await slots.take(signal), await slots.take(signal, { atOnce: true })];
  let entered = false;
  const next = slots.take(signal).then(() => (entered = true));
  leaves[0]?.();
  expect(slots.full).toBe(true);
  await Promise.resolve();
  expect(entered).toBe(false);
  leaves[1]?.();
  expect(await next).toBe(true);
});

it('forgets who stops to wait', async () => {
  const slots = new Slots(1);
  const leave = await slots.take(signal);
  const stop = new AbortController();
  const stopped = slots.take(stop.signal);
  stop.abort();
  await expect(stopped).rejects.toThrow('it was stopped');
  await expect(slots.take(stop.signal)).rejects.toThrow('it was stopped');
  leave();
  await expect(slots.take(signal)).resolves.toBeTypeOf('function');
});
