import { expect, it } from 'vitest';
import { RecentHistory } from './recent-history.ts';

const event = (key: string, revision: number) => ({ key, value: new Uint8Array(100), revision });

it('gives whole revisions from where it still holds them, and says when it does not', () => {
  const recent = new RecentHistory(2_000);
  recent.reset(10);
  for (let revision = 11; revision <= 30; revision++)
    recent.append([event(`k/${revision}`, revision), event('x', revision)]);
  expect(recent.read('', 10)).toBeUndefined();
  const read = recent.read('k/', 28);
  expect(read).toEqual({ events: [event('k/29', 29), event('k/30', 30)], through: 30 });
  expect(recent.read('none/', 28)).toEqual({ events: [], through: 30 });
  expect(recent.read('', 30)).toEqual({ events: [], through: 30 });
});

it('begins anew where it is told to', () => {
  const recent = new RecentHistory(2_000);
  recent.append([event('k/1', 1)]);
  recent.reset(30);
  expect(recent.read('', 1)).toBeUndefined();
  expect(recent.read('', 30)).toEqual({ events: [], through: 30 });
});
