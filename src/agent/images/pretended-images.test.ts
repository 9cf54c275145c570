import { expect, it } from 'vitest';
import type { ImageSpec } from '../../api/resources/image.ts';
import { pretendedImages } from './pretended-images.ts';

const spec: ImageSpec = {
  source: 'https://example.org/a.qcow2',
  decompress: 'none',
  format: 'qcow2',
  nocloud: true,
  architecture: 'amd64',
  aliases: [],
  preload: true,
  defaults: {},
};
const { signal } = new AbortController();

it('has what is wanted at once, alike on all hosts, and other bytes under another digest', async () => {
  const [here, there] = [pretendedImages(), pretendedImages()];
  expect(await here.list()).toEqual([]);
  const { digest } = await here.ensure('a', spec, { signal });
  expect(await here.list()).toEqual([{ name: 'a', digest, sizeBytes: 0 }]);
  expect((await there.ensure('a', spec, { signal })).digest).toBe(digest);
  expect((await there.ensure('a', { ...spec, source: 'https://example.org/b' }, { signal })).digest).not.toBe(digest);
});
