import { expect, it } from 'vitest';
import { Slots } from './slots.ts';

const never = new AbortController().signal;

it('gives each place to one at a time, in the order of asking', async () => {
  const slots = new Slots(['a']);
  const first = Promise.withResolvers<void>();
  const order: string[] = [];
  const work = (name: string, until?: Promise<void>) =>
    slots.run(never, async (slot) => {
      order.push(`${name} has ${slot}`);
      await until;
    });
  const all = [work('1', first.promise), work('2'), work('3')];
  await Promise.resolve();
  expect(order).toEqual(['1 has a']);
  first.resolve();
  await Promise.all(all);
  expect(order).toEqual(['1 has a', '2 has a', '3 has a']);
});

it('frees the place of work that fails, and passes by what is given up', async () => {
  const slots = new Slots([undefined]);
  const first = Promise.withResolvers<void>();
  const failed = slots.run(never, () => first.promise);
  const giveUp = new AbortController();
  const waiting = slots.run(giveUp.signal, () => Promise.resolve('ran'));
  const last = slots.run(never, () => Promise.resolve('ran'));
  giveUp.abort(new Error('given up'));
  await expect(waiting).rejects.toThrow('given up');
  first.reject(new Error('failed'));
  await expect(failed).rejects.toThrow('failed');
  await expect(last).resolves.toBe('ran');
});
