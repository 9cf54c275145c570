import { expect, it } from 'vitest';
import { createManualClock } from '../base/manual-clock.ts';
import { RecentAnswers } from './recent-answers.ts';

/** Answers with how many were made before. Each takes `tookMs`. */
function counting(tookMs = 0) {
  const clock = createManualClock();
  let made = 0;
  const answers = new RecentAnswers(clock, (question: string) => {
    const answer = `${question}${made++}`;
    return tookMs === 0 ? Promise.resolve(answer) : later(answer);
  });
  const later = (answer: string): Promise<string> =>
    new Promise((resolve) => clock.setTimer(tookMs, () => resolve(answer)));
  return { clock, answers };
}

it('shares an answer for as long as each who asks permits', async () => {
  const { clock, answers } = counting();
  expect(await answers.of('a', 100)).toBe('a0');
  clock.advance(50);
  expect(await Promise.all([answers.of('a', 100), answers.of('b', 100)])).toEqual(['a0', 'b1']);
  expect(await answers.of('a', 40)).toBe('a2');
  expect(await answers.of('a', 0)).toBe('a3');
});

it('shares an answer that is being made, also when something changes meanwhile', async () => {
  const { clock, answers } = counting(20);
  const first = answers.of('a', 60_000);
  answers.outdate();
  clock.advance(10);
  const second = answers.of('a', 60_000);
  clock.advance(10);
  expect(await Promise.all([first, second])).toEqual(['a0', 'a0']);
});

it('makes an outdated answer again as soon as that takes no more than 2 % of the time', async () => {
  const { clock, answers } = counting(20);
  const first = answers.of('a', 60_000);
  clock.advance(20);
  await first;
  answers.outdate();
  clock.advance(980); // 1,000 ms since it was begun
  expect(await answers.of('a', 60_000)).toBe('a0');
  clock.advance(1);
  const again = answers.of('a', 60_000);
  clock.advance(20);
  expect(await again).toBe('a1');
});

it('forgets an answer that could not be made', async () => {
  let tries = 0;
  const answers = new RecentAnswers(createManualClock(), () =>
    tries++ === 0 ? Promise.reject(new Error('not now')) : Promise.resolve('made'),
  );
  await expect(answers.of('a', 100)).rejects.toThrow('not now');
  expect(await answers.of('a', 100)).toBe('made');
});
