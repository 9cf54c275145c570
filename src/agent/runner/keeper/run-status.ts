// What is reported of a run. Pure.

import type { RunSpec, RunStatus } from '../../../api/resources/run.ts';
import type { RunRecord } from './run-record.ts';

const messageLengthMax = 1024;

export function statusOfRun(record: RunRecord, spec: RunSpec): RunStatus {
  const { state, outcome, exitCode, reason, message, startedAtMs, endedAtMs } = record;
  const { sentLog, logTruncated, artifactsBytes } = record;
  return {
    state,
    ...(outcome === undefined ? {} : { outcome }),
    ...(exitCode === undefined ? {} : { exitCode }),
    ...(reason === undefined ? {} : { reason }),
    ...(message === undefined ? {} : { message: message.slice(0, messageLengthMax) }),
    ...(startedAtMs === undefined ? {} : { startedAtMs }),
    ...(endedAtMs === undefined ? {} : { endedAtMs }),
    logBytes: sentLog,
    ...(logTruncated ? { logTruncated } : {}),
    ...(spec.artifacts.length > 0 && record.received ? { artifactsBytes } : {}),
  };
}
