// The trace of a boot, from the request to the guest that is ready: made of the record of the instance, which has the times of the control
// plane and those of the agent. Ids follow from the record, so they survive a crash, and who makes a trace twice makes the same.

import { spanIdIn, traceIdIn } from '../../base/tracing/trace-parent.ts';
import type { Instance } from '../../api/resources/instance.ts';
import { sha256 } from '../../base/sha256.ts';

export interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly name: string;
  /** The process whose clock has measured it. */
  readonly service: 'berth-server' | 'berth-agent';
  readonly startMs: number;
  readonly endMs: number;
  readonly attributes: Readonly<Record<string, string>>;
}

/** 32 hex digits, as W3C Trace Context has them; the same for each boot of an instance. */
export function traceIdOf(instanceId: string): string {
  return sha256(`trace:${instanceId}`).slice(0, 32);
}

/** Of the last boot of a guest that is ready; none while there is nothing to tell. */
export function bootSpans({ metadata, spec, status }: Instance): Span[] {
  const { guest, host = '', incarnation } = status;
  const phases = guest?.phases ?? [];
  const first = phases[0];
  if (guest?.ready !== true || first === undefined) return [];
  const { traceParent } = metadata;
  const traceId = traceParent === undefined ? traceIdOf(metadata.id) : traceIdIn(traceParent);
  const spanIdOf = (name: string): string =>
    sha256(`span:${metadata.id}:${incarnation}:${first.startedAtMs}:${name}`).slice(0, 16);
  const attributes = {
    'berth.instance.id': metadata.id,
    'berth.instance.name': metadata.name,
    'berth.instance.incarnation': String(incarnation),
    'berth.project': metadata.project,
    'berth.image': spec.image,
    'host.name': host,
  };
  // What came before a restart belongs to the boot before.
  const isFirst = incarnation === 1 && status.restartCount === 0;
  const scheduled = status.conditions.find(({ type, status: is }) => type === 'Scheduled' && is === 'True');
  const endMs = Math.max(...phases.map(({ startedAtMs, durationMs }) => startedAtMs + durationMs));
  const startMs = isFirst ? metadata.createdAtMs : first.startedAtMs;
  const root: Span = {
    ...{ traceId, spanId: spanIdOf(''), name: 'instance boot', service: 'berth-server', attributes },
    ...(traceParent === undefined ? {} : { parentSpanId: spanIdIn(traceParent) }),
    startMs,
    endMs: Math.max(startMs, endMs), // the clock of the host may be behind
  };
  const below = { traceId, parentSpanId: root.spanId, attributes };
  const waiting: Span[] =
    isFirst && scheduled !== undefined
      ? [
          {
            ...{ ...below, spanId: spanIdOf('schedule'), name: 'schedule', service: 'berth-server' },
            startMs,
            endMs: Math.max(startMs, scheduled.sinceMs),
          },
        ]
      : [];
  const steps = phases.map(
    ({ name, startedAtMs, durationMs }, index): Span => ({
      ...{ ...below, spanId: spanIdOf(`${index}:${name}`), name, service: 'berth-agent' },
      startMs: startedAtMs,
      endMs: startedAtMs + durationMs,
    }),
  );
  return [root, ...waiting, ...steps];
}
