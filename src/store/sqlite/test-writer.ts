// A process that commits to a SQLite store until it is killed or has done its number, for the tests that kill it or
// break its disk. Optionally it compacts the history after a number of commits, for which the entries must be written
// first. One line on standard output per result, written before the next commit: `ok REVISION KEY` or `failed CODE
// OUTCOME KEY`.

import { StoreError } from '../store.ts';
import { openSqliteStore } from './sqlite-store.ts';

const [path = '', count = 'Infinity', compactEach = 'Infinity'] = process.argv.slice(2);
const print = (line: string): Promise<void> => new Promise((resolve) => process.stdout.write(line, () => resolve()));

const store = await openSqliteStore({ path });
await print(`open ${process.pid}\n`);

let next = 0;
const write = async (): Promise<void> => {
  while (next < Number(count)) {
    const key = `k/${next++}`;
    try {
      const result = await store.commit([{ key, ifRevision: 0 }], [{ key, value: Buffer.from(`value of ${key}`) }]);
      if (result.ok && result.revision % Number(compactEach) === 0) await store.compact(result.revision);
      await print(result.ok ? `ok ${result.revision} ${key}\n` : `conflict ${key}\n`);
    } catch (error) {
      if (!(error instanceof StoreError)) throw error;
      await print(`failed ${error.code} ${error.outcome} ${key}\n`);
    }
  }
};
await Promise.all(Array.from({ length: 4 }, write));
await print(`revision ${(await store.list('', { limit: 1 })).revision}\n`);
await store.close();
