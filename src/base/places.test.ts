import { expect, it } from 'vitest';
import { createPlaces } from './places.ts';

const never = new AbortController().signal;
/** Runs until nothing more happens by itself. */
const settle = async (): Promise<void> => {
  for (let turns = 0; turns < 10; turns++) await Promise.resolve();
};

it('lets in as many as there are places, and the others in the order of their coming', async () => {
  const places = createPlaces(2);
  const inside: string[] = [];
  const leavers = new Map<string, () => void>();
  for (const name of ['a', 'b', 'c', 'd'])
    void places.enter(never).then((leave) => {
      inside.push(name);
      leavers.set(name, leave);
    });
  await settle();
  expect(inside).toEqual(['a', 'b']);
  leavers.get('b')?.();
  leavers.get('b')?.(); // releasing twice has no effect
  await settle();
  expect(inside).toEqual(['a', 'b', 'c']);
  leavers.get('a')?.();
  await settle();
  expect(inside).toEqual(['a', 'b', 'c', 'd']);
});

it('holds up nobody who gives up, and keeps no place for him', async () => {
  const places = createPlaces(1);
  const leave = await places.enter(never);
  const impatient = new AbortController();
  const given = places.enter(impatient.signal);
  const patient = places.enter(never);
  impatient.abort();
  (await given)(); // not a permit
  let inside = false;
  void patient.then(() => (inside = true));
  await settle();
  expect(inside).toBe(false);
  leave();
  (await patient)();
  (await places.enter(AbortSignal.abort()))();
  (await places.enter(never))(); // the one permit is free again
});
