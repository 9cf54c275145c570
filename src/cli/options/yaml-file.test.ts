import { expect, it } from 'vitest';
import { parseYaml } from './yaml-file.ts';

it('says that a file is nested too deep', async () => {
  await expect(parseYaml('['.repeat(20_000), 'web.yaml')).rejects.toThrow(
    'cannot read web.yaml: it is nested too deep',
  );
});
