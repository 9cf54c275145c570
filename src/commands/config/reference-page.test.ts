import { readFileSync } from 'node:fs';
import { expect, it } from 'vitest';
import { configurationPage } from './reference-page.ts';

it('docs/configuration.md is what the schemas say; else: node scripts/configuration-page.ts', () => {
  expect(readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8')).toBe(configurationPage());
});
