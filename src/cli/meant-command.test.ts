import { expect, it } from 'vitest';
import { meantCommand } from './meant-command.ts';

const names = [
  'run',
  'ps',
  'show',
  'logs',
  'stop',
  'start',
  'restart',
  'restore',
  'rm',
  'events',
  'image',
  'suspend',
  'resume',
];

it.each([
  ['pss', 'ps'],
  ['lgos', 'logs'],
  ['images', 'image'],
  ['shwo', 'show'],
  ['strat', 'start'],
  ['inspect', 'show'],
  ['delete', 'rm'],
  ['stpo', 'stop'],
  ['stopp', 'stop'],
  ['restrat', 'restart'],
  ['shop', 'show'], // and not stop, which is as near
  ['susped', 'suspend'],
  ['restat', 'restart'],
  ['resum', 'resume'],
  ['vm', 'ps'],
  ['create', 'run'],
  ['uncordon', 'resume'],
  ['rollback', undefined], // no command for it here
  ['step', undefined],
  ['rum', 'run'], // and not rm
  ['constructor', undefined],
])('%s may mean %s', (word, meant) => expect(meantCommand(word, names)).toBe(meant));
