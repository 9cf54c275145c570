import { expect, it } from 'vitest';
import { runBerth } from '../testing.ts';

it.each([
  { words: 'migrate db --cancel --live', message: '--live has no effect with --cancel' },
  { words: 'migrate db --cancel --to h2', message: '--to has no effect with --cancel' },
  { words: 'migrate db --cancel --wait', message: '--wait has no effect with --cancel' },
  { words: 'migrate db --wait --live', message: '--live has no effect with --wait without --apply or --yes' },
  { words: 'host drain h1 --cancel --stop-others', message: '--stop-others has no effect with --cancel' },
  { words: 'host drain h1 --cancel --watch', message: '--watch has no effect with --cancel' },
  { words: 'host drain h1 --status --deadline 1h', message: '--deadline has no effect with --status' },
  { words: 'host drain h1 --watch --then-open', message: '--then-open has no effect with --watch without --apply' },
])('refuses berth $words before it sends anything', async ({ words, message }) => {
  const { exitCode, stderr, requests } = await runBerth(words.split(' '));
  expect({ exitCode, asked: requests.length }).toEqual({ exitCode: 2, asked: 0 });
  expect(stderr).toContain(message);
});
