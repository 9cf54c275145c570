import { expect, it } from 'vitest';
import { cutsConsoles } from './console-limits.ts';

it.each([
  ['nothing is set: the log daemon is used, and cuts at 2 MiB', { qemu: '', log: '' }, true],
  ['the settings are comments only', { qemu: '#stdio_handler = "file"\n', log: '#max_size = 0\n' }, true],
  ['the log daemon has another limit', { qemu: 'stdio_handler = "logd"', log: 'max_size = 4096' }, true],
  ['the log daemon has no limit', { qemu: '', log: ' max_size = 0 # none\nmax_backups = 3' }, false],
  ['the log daemon is not used', { qemu: 'user = "root"\nstdio_handler = "file"\n', log: '' }, false],
  ['the last of two settings holds', { qemu: '', log: 'max_size = 0\nmax_size = 7' }, true],
])('%s', (_, configuration, cuts) => {
  expect(cutsConsoles(configuration)).toBe(cuts);
});
