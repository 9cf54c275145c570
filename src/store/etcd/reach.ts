// How far a list should ask. etcd 3.4 walks its index to the end of the range for every page, however few entries it is to answer: 80 ms
// with 300,000 entries. So after a full page only so much is asked for as should hold another one.

import type { Key } from '../store.ts';

/** So many characters are taken as the digits of a number; of 95 different ones a double holds eight exactly. */
const digits = 8;
/** Of those, so many that all keys of the page share, to carry into. */
const sharedDigits = 4;
/** Enough to see every digit of keys that count, or of identifiers. */
const samples = 100;
/** Rather too far, and cut off by the limit of the page, than a page that is not full. */
const further = 2;

/**
 * Where the range after a page of keys, in their order, should end, exclusively: it should hold as many keys again if those are spread as
 * the page's are. It is a guess: what lies beyond must be asked for, too. It may lie before the page's end when keys are long and alike.
 */
export function reachOf(page: readonly Key[]): Key {
  const [first = '', last = ''] = [page[0], page.at(-1)];
  let shared = 0;
  while (shared < last.length && first[shared] === last[shared]) shared++;
  const alphabet = alphabetOf(page, shared);
  let start = shared;
  while (start > Math.max(0, shared - sharedDigits) && alphabet.includes(last[start - 1] ?? '')) start--;
  const prefix = last.slice(0, start);
  const numberOf = (key: Key): number => {
    let number = 0;
    for (let i = start; i < start + digits; i++)
      number = number * alphabet.length + Math.max(0, alphabet.indexOf(key[i] ?? ''));
    return number;
  };
  const [from, to] = [numberOf(first), numberOf(last)];
  let rest = Math.ceil(to + further * (to - from)) + 1;
  let text = '';
  for (let i = 0; i < digits; i++) {
    text = (alphabet[rest % alphabet.length] ?? '') + text;
    rest = Math.floor(rest / alphabet.length);
  }
  return rest > 0 ? `${prefix}\x7f` : prefix + text;
}

/** The letters and digits that the keys are written with from where they differ on, in their order. */
function alphabetOf(page: readonly Key[], start: number): string {
  const found = new Set<string>();
  const step = Math.max(1, Math.floor(page.length / samples));
  for (let i = 0; i < page.length; i += step)
    for (const character of page[i]?.slice(start, start + digits) ?? '') found.add(character);
  for (const character of page.at(-1)?.slice(start, start + digits) ?? '') found.add(character);
  const counting = [...found].filter((character) => /[0-9a-z]/i.test(character));
  return counting.sort().join('') || '0';
}
