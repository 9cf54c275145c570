// How far the next page of a list should reach. etcd 3.4 walks its index to the end of the range for every page,
// however few entries it returns: 80 ms with 300,000 entries. So after a full page the next request covers only a range
// that should contain another page.

import type { Key } from '../store.ts';

/** Number of characters used as digits of a number; with 95 different ones a double holds eight exactly. */
const digits = 8;
/** Of those, the number that all keys of the page share, for the carry. */
const sharedDigits = 4;
/** Enough to see every digit of counting keys or of identifiers. */
const samples = 100;
/** Better too far, and cut off by the page limit, than a page that is not full. */
const further = 2;

/**
 * The exclusive end of the range after a sorted page of keys: it should contain as many keys again if they are
 * distributed like those of the page. It is an estimate: what lies beyond must be read, too. It may be before the
 * page's end when keys are long and similar.
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

/** The letters and digits in the keys after their common part, sorted. */
function alphabetOf(page: readonly Key[], start: number): string {
  const found = new Set<string>();
  const step = Math.max(1, Math.floor(page.length / samples));
  for (let i = 0; i < page.length; i += step)
    for (const character of page[i]?.slice(start, start + digits) ?? '') found.add(character);
  for (const character of page.at(-1)?.slice(start, start + digits) ?? '') found.add(character);
  const counting = [...found].filter((character) => /[0-9a-z]/i.test(character));
  return counting.sort().join('') || '0';
}
