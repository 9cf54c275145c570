import { expect, it } from 'vitest';
import { sharesLegend, statesLegend } from './legend.tsx';

it('counts the states that some host has', () => {
  const names = statesLegend(['Down', 'Ready', 'Ready']).map(({ name }) => name);
  expect(names).toEqual(['Ready: 2', 'Down: 1']);
});

it('counts the hosts that are not measured', () => {
  expect(sharesLegend([0.3, undefined]).at(-1)?.name).toBe('not measured: 1');
});

it('counts each host once, by what is scarcest on it', () => {
  const names = sharesLegend([0, 0.004, 0.005, 0.49, 0.5, 0.8, 0.994, 0.995, 1, 1.2]).map(({ name }) => name);
  expect(names).toEqual(['nothing: 2', 'up to 50 %: 2', '50 to 80 %: 1', 'over 80 %: 2', 'full: 3']);
});
