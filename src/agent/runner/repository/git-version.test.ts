import { expect, it } from 'vitest';
import { judgeGitVersion } from './git-version.ts';

it.each([
  ['git version 2.39.5', true, false],
  ['git version 2.43.7', true, false],
  ['git version 2.50.1 (Apple Git-155)', true, false],
  ['git version 2.51.0', true, false],
  ['git version 3.0.0', true, false],
  ['git version 2.50.0', true, true],
  ['git version 2.39.2', true, true],
  ['git version 2.42.0', true, true],
  ['git version 2.37.1.windows.1', true, true],
  ['git version 2.36.6', false, false],
  ['git version 1.8.3', false, false],
  ['busybox', false, false],
])('%s: usable %s, with advice %s', (text, usable, advised) => {
  const version = judgeGitVersion(text);
  expect([version.usable, version.usable && version.advice !== undefined]).toEqual([usable, advised]);
});
