import { expect, it } from 'vitest';
import { guestUuid, macAddress } from './guest-files.ts';

const id = 'inst_00000000000000000000000001';

it('gives each life of an instance its own valid uuid', () => {
  expect(guestUuid(id, 1)).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(guestUuid(id, 1)).toBe(guestUuid(id, 1));
  expect(guestUuid(id, 1)).not.toBe(guestUuid(id, 2));
  expect(macAddress(guestUuid(id, 1))).toMatch(/^52:54:00(:[0-9a-f]{2}){3}$/);
});
