// What the agent knows of one run, as it is on its disk: written after each piece of output, so that an agent that starts again goes on
// where the last one was. Two places are written in turn; of what is whole the newer counts.

import { type Static, Type } from 'typebox';
import { matches } from '../../../api/parse.ts';
import { RunOutcome, RunState } from '../../../api/resources/run.ts';
import { recordBytesMax } from '../files/run-files.ts';
import { posixChecksum } from '../posix-checksum.ts';

const Count = Type.Integer({ minimum: 0 });

const RunRecord = Type.Object({
  /** Grows with each write. */
  sequence: Count,
  incarnation: Count,
  state: RunState,
  /** Of the guest that began it. */
  bootId: Type.Optional(Type.String()),
  startedAtMs: Type.Optional(Type.Integer()),
  endedAtMs: Type.Optional(Type.Integer()),
  /** Why the agent ends the program, as soon as it has decided so. */
  ending: Type.Optional(Type.Enum(['cancelled', 'timedOut'])),
  outcome: Type.Optional(RunOutcome),
  exitCode: Type.Optional(Count),
  reason: Type.Optional(Type.String()),
  message: Type.Optional(Type.String()),
  /** Bytes of each stream that are durable here, or dropped. */
  stdout: Count,
  stderr: Count,
  artifacts: Count,
  /** Sizes of the two files; what is beyond was not finished. */
  logBytes: Count,
  artifactsBytes: Count,
  logTruncated: Type.Boolean(),
  /** Nothing more comes from the guest. */
  received: Type.Boolean(),
  /** What the control plane has, as far as it was noted. */
  sentLog: Count,
  sentArtifacts: Count,
});
export type RunRecord = Static<typeof RunRecord>;

export function newRecord(incarnation: number): RunRecord {
  const nothing = { stdout: 0, stderr: 0, artifacts: 0, logBytes: 0, artifactsBytes: 0, sentLog: 0, sentArtifacts: 0 };
  return { sequence: 0, incarnation, state: 'waiting', ...nothing, logTruncated: false, received: false };
}

/** Where record number `sequence` goes. */
export function placeOf({ sequence }: RunRecord): 0 | 1 {
  return sequence % 2 === 0 ? 0 : 1;
}

export function encodeRecord(record: RunRecord): Uint8Array {
  const text = Buffer.from(JSON.stringify(record));
  const line = Buffer.concat([Buffer.from(`${posixChecksum(text)} `), text, Buffer.from('\n')]);
  if (line.length > recordBytesMax) throw new Error(`a record of ${line.length} bytes is too long`);
  return line;
}

/** Undefined: there is none, or none that is whole. */
export function newestRecord(places: readonly Uint8Array[]): RunRecord | undefined {
  const whole = places.map(decodeRecord).filter((record) => record !== undefined);
  return whole.sort((a, b) => b.sequence - a.sequence)[0];
}

function decodeRecord(bytes: Uint8Array): RunRecord | undefined {
  const [line = ''] = Buffer.from(bytes).toString().split('\n', 1);
  const space = line.indexOf(' ');
  const text = line.slice(space + 1);
  if (space < 0 || line.slice(0, space) !== String(posixChecksum(Buffer.from(text)))) return undefined;
  const value: unknown = JSON.parse(text); // what its checksum proves was written whole
  return matches(RunRecord, value) ? value : undefined;
}
