// Loaded into a measured process: answers on a socket how many bytes the process holds after a forced collection.

import { rmSync } from 'node:fs';
import { createServer } from 'node:net';
import process from 'node:process';
import { isMainThread } from 'node:worker_threads';

const server = createServer((connection) => {
  for (let i = 0; i < 3; i++) globalThis.gc();
  const { heapUsed, external } = process.memoryUsage();
  connection.end(String(heapUsed + external));
});
const path = process.env['BERTH_BENCH_HEAP_SOCKET'];
if (isMainThread) {
  rmSync(path, { force: true }); // of the same process: it replaces its own program once
  server.listen(path).unref();
}
