// The thread of the SQLite store, so that the disk never blocks the event loop: one call after the other, each answered
// when it is done.

import { parentPort, workerData } from 'node:worker_threads';
import { assert } from '../../base/assert.ts';
import { createCarried } from '../../base/carried.ts';
import { describeError } from '../../base/log.ts';
import type { Timer } from '../../base/clock.ts';
import { system, systemClock } from '../../base/system.ts';
import { StoreError } from '../store.ts';
import { encodeEntries } from './entries-codec.ts';
import { decodeRequest } from './request-codec.ts';
import { toStoreError } from './sqlite-errors.ts';
import type { Answers, Call, Failure, Reply, ThreadInput } from './sqlite-messages.ts';
import { SqliteWriter } from './sqlite-writer.ts';

/** The maximum for a watcher at once, unless a single revision is larger. */
const watchLimits = { revisions: 256, bytes: 1024 * 1024 };

/** In a list each value has a buffer of its own, and a start lists everything; histories are bounded. */
const carried = createCarried(system.collectYoung);

/** When the start is over, also for a new store. */
const releaseAfterMs = 1_000;
systemClock.setTimer(releaseAfterMs, system.releaseUnused, { background: true });

const input: ThreadInput = workerData;
const port = parentPort;
assert(port, 'this file runs as a thread of the store');
const send = (reply: Reply, handedOver: readonly ArrayBuffer[] = []): void => port.postMessage(reply, handedOver);
let writer: SqliteWriter | undefined;

port.on('message', (call: Call) => {
  const before = stateNow();
  try {
    const answer = answerOf(call);
    send({ type: 'done', before, after: stateNow(), answer }, answer instanceof Uint8Array ? [answer.buffer] : []);
  } catch (error) {
    send({ type: 'failed', before, after: stateNow(), failure: failureOf(error, call) });
  }
  if (call.call !== 'close') return settleSoon();
  quiet?.cancel();
  port.close();
});

/** No call for this long means idle. */
const quietMs = 200;
let quiet: Timer | undefined;
let calls = 0;
let settling = false;

/**
 * Deferrable work runs between calls, a portion at a time: after each call when there is much of it, the rest when the
 * thread is idle.
 */
function settleSoon(): void {
  calls += 1;
  quiet?.cancel();
  quiet = systemClock.setTimer(quietMs, () => settleWhileQuiet(calls), { background: true });
  if (settling || !writer?.pressing) return;
  settling = true;
  system.afterTurn(() => {
    settling = false;
    writer?.settle();
  });
}

function settleWhileQuiet(since: number): void {
  if (calls === since && writer?.settle()) system.afterTurn(() => settleWhileQuiet(since));
}

function stateNow() {
  return writer?.state ?? { revision: 0, compacted: 1 };
}

function answerOf(call: Call): Answers[keyof Answers] {
  if (call.call === 'open') {
    writer = new SqliteWriter({
      ...input,
      tell: (level, message, fields) => send({ type: 'log', level, message, fields }),
    });
    return null;
  }
  if (call.call === 'close') {
    writer?.close();
    return null;
  }
  assert(writer, 'the store is opened before it is used');
  switch (call.call) {
    case 'commit':
      return writer.commit(call.requests.map(decodeRequest));
    case 'get':
      return writer.get(call.key);
    case 'list': {
      const answer = encodeEntries(writer.list(call.prefix, call));
      carried(answer.byteLength);
      return answer;
    }
    case 'history':
      return writer.read(`watch of "${call.prefix}"`, (connection) =>
        connection.history(call.prefix, call.after, watchLimits),
      );
    case 'follow':
      return writer.follow(call.before);
    case 'setCompacted':
      writer.setCompacted(call.before);
      return null;
    case 'forget':
      return writer.forget(call.before, call.count);
  }
}

function failureOf(error: unknown, call: Call): Failure {
  const failure =
    error instanceof StoreError
      ? error
      : toStoreError(error, call.call, input.path, call.call === 'commit' ? 'unknown' : 'none');
  const { code, message, outcome } = failure;
  return { code, message, outcome, cause: describeError(failure.cause ?? error) };
}
