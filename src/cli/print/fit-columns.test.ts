import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fitColumns, type TableColumn } from './fit-columns.ts';

const gap = 2;
const column = (width: number, more: Partial<TableColumn> = {}): TableColumn => ({
  width,
  least: Math.min(width, 10),
  importance: 'plain',
  empty: false,
  ...more,
});
const name = column(10, { importance: 'major' });
const reason = column(60, { importance: 'major', least: 30 });

describe('the columns of a table', () => {
  it.each<[string, TableColumn[], number, [index: number, width: number][]]>([
    [
      'all stand where there is room: 10 + 2 + 20',
      [name, column(20)],
      32,
      [
        [0, 10],
        [1, 20],
      ],
    ],
    [
      'an empty one goes first: 10 + 2 + 20',
      [name, column(4, { empty: true }), column(20)],
      32,
      [
        [0, 10],
        [2, 20],
      ],
    ],
    [
      'an empty one stays where there is room',
      [name, column(4, { empty: true })],
      16,
      [
        [0, 10],
        [1, 4],
      ],
    ],
    [
      'only as many empty ones go as it takes, from the right',
      [name, column(4, { empty: true }), column(4, { empty: true })],
      16,
      [
        [0, 10],
        [1, 4],
      ],
    ],
    [
      'then the longest cell is cut: 10 + 2 + 15 + 2 + 31',
      [name, column(15), reason],
      60,
      [
        [0, 10],
        [1, 15],
        [2, 31],
      ],
    ],
    [
      'before a minor column goes, and that before a plain one',
      [name, column(8, { importance: 'minor' }), column(8), reason],
      52,
      [
        [0, 10],
        [2, 8],
        [3, 30],
      ],
    ],
    [
      'plain ones go from the right',
      [name, column(8), column(8), reason],
      52,
      [
        [0, 10],
        [1, 8],
        [3, 30],
      ],
    ],
    [
      'major ones are cut as far as it takes: 9 + 2 + 9',
      [name, column(8), reason],
      20,
      [
        [0, 9],
        [2, 9],
      ],
    ],
    ['the first one stays, be it empty', [column(5, { empty: true }), column(9)], 10, [[0, 5]]],
    [
      'without a limit nothing is lost',
      [name, reason],
      Number.POSITIVE_INFINITY,
      [
        [0, 10],
        [1, 60],
      ],
    ],
  ])('%s', (_, columns, room, expected) => {
    expect(fitColumns(columns, room, gap).map(({ index, width }) => [index, width])).toEqual(expected);
  });

  it('never need more than the room, and major ones are all there', () =>
    fc.assert(
      fc.property(
        fc.array(
          fc.record({
            width: fc.integer({ min: 1, max: 90 }),
            importance: fc.constantFrom('minor', 'plain', 'major'),
            empty: fc.boolean(),
          }),
          { minLength: 1, maxLength: 12 },
        ),
        fc.integer({ min: 36, max: 200 }), // 12 columns of a character, and 11 gaps, need 34
        (rows, room) => {
          const columns = rows.map((row) => ({ ...row, least: Math.min(row.width, 10) }));
          const shown = fitColumns(columns, room, gap);
          const used = shown.reduce((sum, { width }) => sum + width, gap * (shown.length - 1));
          expect(used <= room || (shown.length === 1 && shown[0]?.index === 0)).toBe(true);
          for (const [index, { importance, empty }] of columns.entries())
            if (importance === 'major' && !empty) expect(shown.some((one) => one.index === index)).toBe(true);
        },
      ),
    ));
});
