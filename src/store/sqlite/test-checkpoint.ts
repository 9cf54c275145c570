// A process that commits more than an idle writer leaves in the write-ahead log, waits until that has been moved into
// the file, and commits once more, for the test that breaks the disk in between. It prints the store's log and its
// results.

import type { Logger } from '../../base/log.ts';
import { openSqliteStore } from './sqlite-store.ts';

const [path = ''] = process.argv.slice(2);
const print = (text: string): void => void process.stdout.write(`${text}\n`);
const tell = (message: string, { attempted }: Record<string, unknown> = {}): void =>
  print(`${message}: ${typeof attempted === 'string' ? attempted : ''}`);
const log: Logger = { debug: tell, info: tell, warn: tell, error: tell, with: () => log };

const store = await openSqliteStore({ path, log });
const many = Array.from({ length: 2_100 }, (_, i) => ({ key: `k/${i}`, value: Buffer.alloc(300) }));
print(`first ${JSON.stringify(await store.commit([], many))}`);
await new Promise((resolve) => setTimeout(resolve, 1_000)); // idleness cannot be awaited from outside
print(
  `second ${JSON.stringify(await store.commit([{ key: 'k/0', ifRevision: 1 }], [{ key: 'after', value: Buffer.of(1) }]))}`,
);
process.kill(process.pid, 'SIGKILL');
