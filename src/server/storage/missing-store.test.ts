import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { refuseMissingStore } from './missing-store.ts';

let dataDirectory: string;
let url: string;
beforeEach(async () => {
  dataDirectory = await mkdtemp(join(tmpdir(), 'berth-gone-'));
  url = `sqlite:${join(dataDirectory, 'volume', 'berth.db')}`;
});
afterEach(() => rm(dataDirectory, { recursive: true, force: true }));

const put = async (...files: string[]): Promise<void> => {
  for (const file of files) await writeFile(join(dataDirectory, file), 'x');
};

describe('a database file that is gone', () => {
  it('is refused where a server has run, with the way out', async () => {
    await put('secret', 'server-id');
    expect(() => refuseMissingStore(url, { dataDirectory, newFleet: false })).toThrow(
      /berth\.db is gone, though .* mount its file system.*berth restore.*--new-fleet/,
    );
  });

  it('is made anew on request', async () => {
    await put('secret', 'server-id');
    expect(() => refuseMissingStore(url, { dataDirectory, newFleet: true })).not.toThrow();
  });

  it.each([
    ['where no server has run', [], undefined],
    ['where a start was broken off before it had a store', ['server-id'], undefined],
    ['that is another kind of store', ['secret', 'server-id'], 'postgres://berth@db/berth'],
  ])('is no matter %s', async (_, files, other) => {
    await put(...files);
    expect(() => refuseMissingStore(other ?? url, { dataDirectory, newFleet: false })).not.toThrow();
  });

  it('is there', async () => {
    await put('secret', 'server-id', 'berth.db');
    const there = `sqlite:${join(dataDirectory, 'berth.db')}`;
    expect(() => refuseMissingStore(there, { dataDirectory, newFleet: false })).not.toThrow();
  });
});
