// Asks the API server of a configured cluster for a node. Users name cluster and node only, so no address is theirs.

import type { Clock } from '../../../base/clock.ts';
import { isRecord } from '../../../base/is-record.ts';
import { type HttpAnswer, httpCall, jsonOf } from '../http-call.ts';
import { hiding, plainLine } from '../plain-line.ts';
import type { ClusterConfig } from '../provisioners/provisioner-config.ts';
import { readCaFile, readTokenFile, shownFault } from '../provisioners/secret-file.ts';
import { nodeReadiness, type Readiness, type WantedNode } from './node-readiness.ts';

export interface NodeProbe {
  /** The cluster's name in the configuration, for messages. */
  readonly cluster: string;
  readonly node: WantedNode;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export async function probeNode(
  clock: Clock,
  config: ClusterConfig,
  { cluster, node, timeoutMs, signal }: NodeProbe,
): Promise<Readiness> {
  const field = `kubernetes.${cluster}`;
  try {
    const token = await readTokenFile(config.tokenFile, `${field}.tokenFile`);
    const ca = await readCaFile(config.caFile, `${field}.caFile`);
    const answer = await httpCall(clock, {
      method: 'GET',
      url: `${config.url.replace(/\/+$/, '')}/api/v1/nodes/${encodeURIComponent(node.name)}`,
      headers: { authorization: `Bearer ${token}` },
      ...(ca === undefined ? {} : { ca }),
      timeoutMs,
      signal,
    });
    return readinessOf(answer, { cluster, node, hide: hiding([token]) });
  } catch (error) {
    return { ready: false, message: `cluster "${cluster}": ${shownFault(error)}` };
  }
}

interface Asked {
  readonly cluster: string;
  readonly node: WantedNode;
  readonly hide: (text: string) => string;
}

function readinessOf(answer: HttpAnswer, { cluster, node, hide }: Asked): Readiness {
  const { status } = answer;
  const json = jsonOf(answer);
  if (status === 200) return nodeReadiness(json, node);
  // A proxy in front answers 404 too, but not with a Status.
  const reason = isRecord(json) && json['kind'] === 'Status' ? json['reason'] : undefined;
  if (status === 404 && reason === 'NotFound')
    return { ready: false, message: `node "${node.name}" has not registered yet` };
  const told =
    isRecord(json) && typeof json['message'] === 'string' ? `: ${plainLine(hide(json['message']), 300)}` : '';
  if (status === 401 || status === 403) {
    const remedy = status === 401 ? 'give tokenFile a valid token' : 'its service account needs the right to get nodes';
    return { ready: false, message: `cluster "${cluster}" answered ${status}${told}; ${remedy}`, failed: true };
  }
  return { ready: false, message: `cluster "${cluster}" answered ${status}${told}` };
}
