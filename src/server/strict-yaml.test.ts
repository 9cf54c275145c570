import { expect, it } from 'vitest';
import { parseStrictYaml } from './strict-yaml.ts';

it.each([
  ['sequences', '['.repeat(20_000)],
  ['mappings', '{a: '.repeat(20_000)],
  ['sequences that are closed', '['.repeat(100) + ']'.repeat(100)],
])('says that %s without end are nested too deep', (_, text) => {
  expect(() => parseStrictYaml(text, 'the image map')).toThrow(
    expect.objectContaining({
      code: 'InvalidRequest',
      message: expect.stringMatching(/cannot read the image map.* nested deeper than 32 levels/),
    }),
  );
});
