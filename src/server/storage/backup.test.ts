import { expect, it } from 'vitest';
import { encodeRecord } from '../../core/state/codec.ts';
import { keys } from '../../core/state/keys.ts';
import type { Cluster } from '../../core/state/records.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import { readBackup, writeBackup } from './backup.ts';

const made = { version: 'test', nowMs: 1_000 };
const cluster: Cluster = {
  kind: 'cluster',
  recordsVersion: 1,
  epoch: 'epoch-1',
  createdAtMs: 0,
  tokenSecret: 's'.repeat(43),
  operatorToken: 'o'.repeat(43),
};
const json = (value: unknown): Uint8Array => Buffer.from(JSON.stringify(value));

/** A store with more entries than a page. */
async function filled() {
  const store = createMemoryStore();
  await store.commit([], [{ key: keys.cluster, value: encodeRecord(cluster) }]);
  for (let i = 0; i < 50; i++)
    await store.commit(
      [],
      Array.from({ length: 100 }, (_, n) => ({
        key: `gates/${i}-${n}`,
        value: json({ kind: 'gate', text: `ü ${i}` }),
      })),
    );
  return store;
}

async function textOf(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  const all: Uint8Array[] = [];
  for await (const piece of pieces) all.push(piece);
  return Buffer.concat(all).toString('utf8');
}

/** In pieces that end anywhere. */
async function* piecesOf(text: string, size = 1_000): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(text);
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.subarray(at, at + size);
}

it('holds the store as it was at one revision, whatever is written meanwhile', async () => {
  const store = await filled();
  const states: { revision: number; entries: Map<string, string> }[] = [];
  const remember = async (): Promise<void> => {
    const { entries, revision } = await store.list('');
    states.push({ revision, entries: new Map(entries.map(({ key, value }) => [key, Buffer.from(value).toString()])) });
  };
  const pieces: Uint8Array[] = [];
  let turn = 0;
  for await (const piece of writeBackup(store, made)) {
    pieces.push(piece);
    turn += 1;
    await store.commit([], [{ key: `gates/0-${turn}`, value: null }]);
    await store.commit([], [{ key: `gates/49-${turn}`, value: json({ kind: 'gate', turn }) }]);
    await store.commit([], [{ key: `gates/new ${turn}`, value: json({ kind: 'gate', turn }) }]);
    await remember();
  }
  const backup = await readBackup(piecesOf(Buffer.concat(pieces).toString('utf8')));
  const state = states.find(({ revision }) => revision === backup.revision) ?? expect.unreachable();
  const found = new Map([...backup.entries].map(([key, value]) => [key, Buffer.from(value).toString()]));
  expect(found).toEqual(state.entries);
  expect(backup).toMatchObject({ epoch: 'epoch-1', version: 'test', createdAtMs: 1_000 });
  expect(turn).toBeGreaterThan(3);
});

it.each([
  ['is empty', () => '', 'empty'],
  ['is something else', () => 'PNG\n\n', 'not JSON: it is not a backup'],
  ['is other JSON', () => '{"a":1}\n', 'not a backup made by Berth'],
  ['was cut off', (text: string) => text.slice(0, text.length / 2), /cut off|not JSON/],
  [
    'was cut off between two lines',
    (text: string) => text.slice(0, text.lastIndexOf('\n', text.length - 2) + 1),
    'cut off',
  ],
  ['lost a line', (text: string) => text.replace(/\n.*"gates\/3-7".*\n/, '\n'), 'its last line says'],
  ['was changed', (text: string) => text.replace('ü 3"', 'ü 4"'), 'checksum is wrong'],
  ['goes on after its end', (text: string) => `${text}{"key":"a","revision":1,"value":null}\n`, 'follows the end'],
  ['is of a newer Berth', (text: string) => text.replace('"format":1', '"format":2'), 'use the newer version'],
  [
    'was written by hand',
    (text: string) => text.replace('{"key":"gates/3-7",', '{ "key":"gates/3-7",'),
    'not as Berth writes',
  ],
])('refuses a file that %s', async (_, spoil, message) => {
  const text = await textOf(writeBackup(await filled(), made));
  await expect(readBackup(piecesOf(spoil(text)))).rejects.toThrow(message);
});

it('is read in whatever pieces it comes', async () => {
  const text = await textOf(writeBackup(await filled(), made));
  const whole = await readBackup(piecesOf(text, text.length));
  for (const size of [7, 1_001, 65_536]) {
    const { entries } = await readBackup(piecesOf(text, size));
    expect(entries).toEqual(whole.entries);
  }
});
