import { expect, it } from 'vitest';
import { named, withNames } from './named.ts';

const web = `inst_${'0'.repeat(25)}1`;
const data = `vol_${'0'.repeat(25)}2`;
const names = new Map([
  [web, 'web'],
  [data, 'data'],
]);
const nameOf = (id: string): string | undefined => names.get(id);

it.each([
  ['an instance', `cannot start ${web}: QEMU is not there`, 'cannot start "web": QEMU is not there'],
  ['a volume', `guest ${web} has volume ${data}.`, 'guest "web" has volume "data".'],
  ['what is quoted already', `instance "${web}" is gone`, 'instance "web" is gone'],
  ['the end of a sentence', `it is removed once ${web} has it no more`, 'it is removed once "web" has it no more'],
])('says the name of %s', (_, text, told) => expect(named(text, nameOf)).toBe(told));

it.each([
  ['a path', `mend /var/lib/berth/guests/${web}/guest.json`],
  ['the end of a path', `mend /var/lib/berth/guests/${web}`],
  ['the name of a domain', `domain berth-${web} runs already`],
  ['a file', `${data}.qcow2 is torn`],
  ['an id that is not known', `inst_${'0'.repeat(25)}9 is gone`],
])('leaves alone %s', (_, text) => expect(named(text, nameOf)).toBe(text));

it('changes what people read of a report', () => {
  const report = { state: 'failed', message: `cannot create ${web}: no`, address: web };
  expect(withNames(report, nameOf)).toEqual({ ...report, message: 'cannot create "web": no' });
});
