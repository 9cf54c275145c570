import { expect, it } from 'vitest';
import { createCarried } from './carried.ts';
import { system } from './system.ts';

it('asks for a collection as often as the bytes need it', () => {
  let asked = 0;
  const carried = createCarried(() => (asked += 1));
  for (let i = 0; i < 1024; i++) carried(64 * 1024); // 64 MiB
  expect(asked).toBe(10);
  carried(0);
  expect(asked).toBe(10);
});

it('keeps what is in use, when the machine collects', () => {
  const kept = Buffer.alloc(1024 * 1024, 7);
  const carried = createCarried(system.collectYoung);
  for (let i = 0; i < 100; i++) carried(Buffer.alloc(1024 * 1024).length);
  expect(kept.every((byte) => byte === 7)).toBe(true);
});
