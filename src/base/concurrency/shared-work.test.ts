import { expect, it } from 'vitest';
import { createSharedWork, type WorkCall } from './shared-work.ts';

const never = { signal: new AbortController().signal };

/** Work that ends when the test ends it. */
function scripted() {
  const done = Promise.withResolvers<string>();
  const work = { begun: 0, call: undefined as WorkCall<string> | undefined, done };
  const begin = (call: WorkCall<string>): Promise<string> => {
    work.begun += 1;
    work.call = call;
    return done.promise;
  };
  return { work, begin };
}

it('is done once for all who ask, tells all of them how far it is, and is done anew afterwards', async () => {
  const shared = createSharedWork<string, string>();
  const { work, begin } = scripted();
  const heard: string[] = [];
  const callers = ['a', 'b'].map((name) =>
    shared.join('key', { ...never, onProgress: (progress) => heard.push(`${name} ${progress}`) }, begin),
  );
  expect(shared.has('key')).toBe(true);
  work.call?.tell('half');
  work.done.resolve('whole');
  expect(await Promise.all(callers)).toEqual(['whole', 'whole']);
  expect(heard).toEqual(['a half', 'b half']);
  expect(work.begun).toBe(1);
  expect(shared.has('key')).toBe(false);
  expect(await shared.join('key', never, () => Promise.resolve('another'))).toBe('another');
});

it('fails for all who wait', async () => {
  const shared = createSharedWork<string, string>();
  const { work, begin } = scripted();
  const callers = Promise.allSettled([shared.join('key', never, begin), shared.join('key', never, begin)]);
  work.done.reject(new Error('no'));
  expect((await callers).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
});

it('goes on while somebody waits, and ends with the last one, who hears of it when it has ended', async () => {
  const shared = createSharedWork<string, string>();
  const { work, begin } = scripted();
  const [one, two] = [new AbortController(), new AbortController()];
  const first = shared.join('key', { signal: one.signal }, begin);
  const second = shared.join('key', { signal: two.signal }, begin);
  one.abort();
  expect(await first).toBeUndefined();
  expect(work.call?.signal.aborted).toBe(false);
  const ending = new Promise((resolve) => work.call?.signal.addEventListener('abort', resolve, { once: true }));
  two.abort();
  await ending;
  const third = shared.join('key', never, () => Promise.resolve('begun anew')); // not the one that is ending
  expect(shared.has('key')).toBe(true);
  work.done.reject(new Error('given up'));
  expect(await second).toBeUndefined();
  expect(await third).toBe('begun anew');
});

it('is not begun for one who has left already', async () => {
  const shared = createSharedWork<string, string>();
  const { work, begin } = scripted();
  expect(await shared.join('key', { signal: AbortSignal.abort() }, begin)).toBeUndefined();
  expect(work.begun).toBe(0);
});
