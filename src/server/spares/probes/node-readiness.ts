// Whether a node of Kubernetes is the one that was made, and takes pods. Pure. The condition Ready alone does not say so: it is kept from a
// former machine of the same name until the first report of the new one, and a node that is cordoned or drained is Ready too.

import { isRecord } from '../../../base/is-record.ts';
import { plainLine } from '../plain-line.ts';

export interface Readiness {
  readonly ready: boolean;
  readonly message: string;
  /** Asking again does not help. */
  readonly failed?: true;
}

export interface WantedNode {
  readonly name: string;
  /** The `metadata.uid` of a node of this name from before; undefined: there was none. */
  readonly formerUid?: string;
  /** A node that was created before this is a former one. */
  readonly createdAfterMs?: number;
}

/** `json`: the body of `GET /api/v1/nodes/NAME` with status 200. */
export function nodeReadiness(json: unknown, { name, formerUid, createdAfterMs }: WantedNode): Readiness {
  const not = (message: string): Readiness => ({ ready: false, message });
  if (!isRecord(json) || json['kind'] !== 'Node' || !isRecord(json['metadata']))
    return not('the API server did not answer with a Node');
  const { name: found, uid, creationTimestamp, deletionTimestamp } = json['metadata'];
  if (found !== name) return not(`the API server answered with another node, not "${name}"`);
  if (typeof uid !== 'string' || uid === '') return not(`node "${name}" has no uid`);
  if (uid === formerUid || isBefore(creationTimestamp, createdAfterMs))
    return not(`node "${name}" is the former one of this name: it has not registered again; delete the former one`);
  if (deletionTimestamp !== undefined && deletionTimestamp !== null) return not(`node "${name}" is being deleted`);
  const spec = isRecord(json['spec']) ? json['spec'] : {};
  if (spec['unschedulable'] === true) return not(`node "${name}" is cordoned (spec.unschedulable)`);
  const taint = noExecuteTaint(spec['taints']);
  if (taint !== undefined) return not(`node "${name}" has the NoExecute taint ${taint}`);
  return condition(json['status'], name);
}

function condition(status: unknown, name: string): Readiness {
  const conditions = isRecord(status) && Array.isArray(status['conditions']) ? status['conditions'] : [];
  const ready = conditions.find((each) => isRecord(each) && each['type'] === 'Ready');
  if (!isRecord(ready))
    return { ready: false, message: `node "${name}" has not reported yet: it has no condition Ready` };
  if (ready['status'] === 'True') return { ready: true, message: `node "${name}" is Ready` };
  const known = ready['status'] === 'False' ? 'False' : 'Unknown';
  const told = [ready['reason'], ready['message']].filter((text) => typeof text === 'string' && text !== '').join(': ');
  return {
    ready: false,
    message: `Ready of node "${name}" is ${known}${told === '' ? '' : ` (${plainLine(told, 200)})`}`,
  };
}

/** `key=value`, or `key`. */
function noExecuteTaint(taints: unknown): string | undefined {
  const taint = (Array.isArray(taints) ? taints : []).find((each) => isRecord(each) && each['effect'] === 'NoExecute');
  if (!isRecord(taint)) return undefined;
  const { key, value } = taint;
  return plainLine(typeof value === 'string' && value !== '' ? `${String(key)}=${value}` : String(key), 128);
}

/** Its clock may differ from ours by some minutes. */
const skewMs = 300_000;

function isBefore(timestamp: unknown, afterMs: number | undefined): boolean {
  if (afterMs === undefined || typeof timestamp !== 'string') return false;
  return Date.parse(timestamp) < afterMs - skewMs;
}
