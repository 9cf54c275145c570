import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { UnappliedEntries } from './unapplied.ts';

const text = (value: Uint8Array | null | undefined): string | null => (value ? Buffer.from(value).toString() : null);
const bytes = (value: string | null) => (value === null ? null : Buffer.from(value));

describe('entries that follow the log', () => {
  it('are read as they were last written, and are in the table as the log says, whatever comes between portions', () => {
    const write = fc.record({
      key: fc.constantFrom('a', 'b', 'c', 'd'),
      value: fc.option(fc.string({ maxLength: 3 })),
    });
    const commit = fc.uniqueArray(write, { selector: ({ key }) => key, minLength: 1, maxLength: 4 });
    const step = fc.oneof(commit, fc.constant('apply' as const));
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const unapplied = new UnappliedEntries();
        const table = new Map<string, string | null>();
        const history: Map<string, string | null>[] = [new Map()];
        const read = (key: string) => {
          const found = unapplied.get(key);
          return found ? text(found.value) : (table.get(key) ?? null);
        };
        const apply = (): boolean => {
          const portion = unapplied.portion(2);
          for (const { key, value } of portion?.entries ?? []) table.set(key, text(value));
          if (!portion) return false;
          unapplied.applied(portion.entries);
          // A crash now reads the log from `through` on: what was last written before that must be in the table, or have been
          // overwritten since.
          const then = portion.through === undefined ? undefined : history[portion.through];
          for (const [key, value] of then ?? []) {
            const since = history.slice((portion.through ?? 0) + 1).some((state) => state.get(key) !== value);
            if (!since) expect(table.get(key) ?? null).toBe(value);
          }
          return true;
        };
        for (const each of steps) {
          if (each === 'apply') {
            apply();
            continue;
          }
          const now = new Map(history.at(-1));
          for (const { key, value } of each) now.set(key, value);
          history.push(now);
          unapplied.add(
            each.map(({ key, value }) => ({ key, value: bytes(value) })),
            history.length - 1,
          );
          for (const [key, value] of now) expect(read(key)).toBe(value);
        }
        while (apply());
        expect(unapplied.size).toBe(0);
        expect(unapplied.changes).toBe(0);
        for (const [key, value] of history.at(-1) ?? []) expect(table.get(key) ?? null).toBe(value);
      }),
    );
  });

  it('are so many as must be read from the log: what is written again counts again', () => {
    const unapplied = new UnappliedEntries();
    for (let revision = 1; revision <= 5; revision++) unapplied.add([{ key: 'lease', value: bytes('x') }], revision);
    expect([unapplied.size, unapplied.changes]).toEqual([1, 5]);
    const portion = unapplied.portion(10);
    expect(portion).toMatchObject({ entries: [{ key: 'lease', revision: 5 }], through: 5 });
    unapplied.applied(portion?.entries ?? []);
    expect([unapplied.size, unapplied.changes]).toEqual([0, 0]);
  });
});
