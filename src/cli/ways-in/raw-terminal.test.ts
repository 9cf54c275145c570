import { expect, it } from 'vitest';
import { rawTerminal } from './raw-terminal.ts';

const sizeOf = (columns?: number, rows?: number) => {
  const stdout = {
    write: () => true,
    isTTY: true,
    ...(columns === undefined ? {} : { columns }),
    ...(rows === undefined ? {} : { rows }),
  };
  const stdin = (async function* () {})();
  return rawTerminal({ stdin, stdout } as unknown as Parameters<typeof rawTerminal>[0], { escapable: false }).size(); // it uses no more of it
};

it.each([
  ['is told', 100, 30, { columns: 100, rows: 30 }],
  ['is not known where a serial line says 0', 0, 0, undefined],
  ['is not known by half', 80, 0, undefined],
  ['is not known where nobody says one', undefined, undefined, undefined],
])('the size of a terminal %s', (_, columns, rows, size) => expect(sizeOf(columns, rows)).toEqual(size));
