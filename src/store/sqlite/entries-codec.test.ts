import { describe, expect, it } from 'vitest';
import { decodeEntries, encodeEntries } from './entries-codec.ts';

describe('entries in one piece', () => {
  it('come back as they were, empty values and high revisions too', () => {
    const entries = [
      { key: 'a', value: new Uint8Array([1, 2, 255]), revision: 1 },
      { key: 'empty', value: new Uint8Array(0), revision: 2 ** 40 },
      { key: `long/${'k'.repeat(500)}`, value: new Uint8Array(70_000).fill(7), revision: 3 },
    ];
    expect(decodeEntries(encodeEntries(entries))).toEqual(entries);
  });

  it('are none when there are none', () => {
    expect(decodeEntries(encodeEntries([]))).toEqual([]);
  });
});
