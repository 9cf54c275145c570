import { cpSync, rmSync } from 'node:fs';
import { describe, expect, it, onTestFinished } from 'vitest';
import { createManualClock } from '../../base/manual-clock.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import { type Store, StoreError, type Write } from '../../store/store.ts';
import { startTestServer } from '../testing.ts';
import { linesIn, testFolder, testSettings } from './testing.ts';

const image = { metadata: { name: 'debian' }, spec: { source: 'file:///debian.img' } };
const writesImage = ({ key }: Write): boolean => key === 'images/debian';

/** Copies the files at one moment of the create of an image: what a crash then would leave. */
async function crashAt(moment: 'before the commit' | 'after the commit' | 'after the answer'): Promise<{
  readonly store: Store;
  readonly left: string;
}> {
  const [directory, left] = [testFolder(), testFolder()];
  const store = createMemoryStore();
  let dead = false;
  const leave = (): void => {
    dead = true;
    rmSync(left, { recursive: true });
    cpSync(directory, left, { recursive: true });
  };
  const commit: Store['commit'] = async (conditions, writes) => {
    if (dead) throw new StoreError('Unavailable', 'killed');
    const isIt = writes.some(writesImage);
    if (isIt && moment === 'before the commit') {
      leave();
      throw new StoreError('Unavailable', 'killed');
    }
    const result = await store.commit(conditions, writes);
    if (isIt && moment === 'after the commit') leave();
    return result;
  };
  const watched = new Proxy(store, {
    get(target, name) {
      if (name === 'commit') return commit;
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
  const server = await startTestServer({ store: watched, audit: testSettings(directory) });
  await server.client.create('image', image).catch(() => undefined); // it may have been killed
  if (moment === 'after the answer') leave();
  await server.drop();
  return { store, left };
}

it.each([
  ['before the commit', 0],
  ['after the commit', 1],
  ['after the answer', 1],
] as const)('has after a crash %s %i lines of the change', async (moment, count) => {
  const { store, left } = await crashAt(moment);
  const server = await startTestServer({ store, audit: testSettings(left) });
  onTestFinished(() => server.close());
  const lines = linesIn(left).filter(({ object, outcome }) => object === 'debian' && outcome === 'done');
  expect(lines).toHaveLength(count);
  if (moment === 'after the commit') {
    const { metadata } = await server.client.get('image', 'debian');
    expect(lines[0]).toMatchObject({ recovered: true, who: 'admin', verb: 'create', revision: metadata.revision });
  }
  expect(await server.client.checkAuditLog()).toMatchObject({ faults: [] });
});

describe('a commit whose answer is lost', () => {
  /** The image of `debian` is written, or not, and the store says that it cannot be reached. */
  function doubtfulStore(isWritten: boolean): Store {
    const store = createMemoryStore();
    const commit: Store['commit'] = async (conditions, writes) => {
      if (!writes.some(writesImage)) return store.commit(conditions, writes);
      if (isWritten) await store.commit(conditions, writes);
      throw new StoreError('Unavailable', 'the connection broke', { outcome: 'unknown' });
    };
    return new Proxy(store, {
      get(target, name) {
        if (name === 'commit') return commit;
        const value: unknown = Reflect.get(target, name);
        return typeof value === 'function' ? value.bind(target) : value;
      },
    });
  }
  const ends = (directory: string): unknown[] =>
    linesIn(directory)
      .filter(({ object }) => object === 'debian')
      .map(({ outcome }) => outcome);

  it.each([
    ['made', true, ['unknown', 'done']],
    ['not made', false, ['unknown', 'failed']],
  ] as const)('is unknown, and settled by a later line when it was %s', async (_, isWritten, outcomes) => {
    const directory = testFolder();
    const clock = createManualClock();
    const server = await startTestServer({ store: doubtfulStore(isWritten), clock, audit: testSettings(directory) });
    onTestFinished(() => server.close());
    await expect(server.client.create('image', image)).rejects.toMatchObject({ status: 503 });
    expect(ends(directory)).toEqual(['unknown']);
    const unknown = linesIn(directory).find(({ outcome }) => outcome === 'unknown');
    clock.advance(10_000);
    await expect.poll(() => ends(directory)).toEqual(outcomes);
    expect(linesIn(directory).at(-1)).toMatchObject({ settles: unknown?.['seq'], request: unknown?.['request'] });
  });

  it.each([
    ['made', true, ['unknown', 'done']],
    ['not made', false, ['unknown']],
  ] as const)(
    'and whose server then crashes is settled at the next start when it was %s',
    async (_, isWritten, outcomes) => {
      const directory = testFolder();
      const store = doubtfulStore(isWritten);
      const first = await startTestServer({ store, audit: testSettings(directory) });
      await expect(first.client.create('image', image)).rejects.toMatchObject({ status: 503 });
      await first.drop();
      const second = await startTestServer({ store, audit: testSettings(directory) });
      onTestFinished(() => second.close());
      expect(ends(directory)).toEqual(outcomes);
      expect((await second.client.list('image')).items).toHaveLength(isWritten ? 1 : 0);
      expect(await second.client.checkAuditLog()).toMatchObject({ faults: [] });
    },
  );
});
