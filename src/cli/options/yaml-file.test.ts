import { expect, it } from 'vitest';
import { parseYaml } from './yaml-file.ts';

it('names the line and the column of a fault, in one line', async () => {
  await expect(parseYaml('kind: size\nspec: [\n', 'web.yaml')).rejects.toThrow(/^cannot read web\.yaml:3:1: [^\n]+$/);
});

it('says that a file is nested too deep', async () => {
  await expect(parseYaml('['.repeat(20_000), 'web.yaml')).rejects.toThrow(
    'cannot read web.yaml: it is nested too deep',
  );
});
