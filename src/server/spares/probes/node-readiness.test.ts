import { describe, expect, it } from 'vitest';
import { nodeReadiness } from './node-readiness.ts';

const createdMs = Date.parse('2026-11-20T10:00:00Z');
const conditions = (status: string, more: object = {}) => ({
  conditions: [
    { type: 'MemoryPressure', status: 'False' },
    { type: 'Ready', status, ...more },
  ],
});
const node = (changes: { metadata?: object; spec?: unknown; status?: unknown } = {}) => ({
  kind: 'Node',
  apiVersion: 'v1',
  metadata: { name: 'rack1', uid: 'new', creationTimestamp: '2026-11-20T10:00:00Z', ...changes.metadata },
  spec: changes.spec ?? { podCIDR: '10.244.0.0/24' },
  status: changes.status ?? conditions('True', { reason: 'KubeletReady' }),
});

describe('a node of Kubernetes', () => {
  it.each<[string, unknown, boolean, string]>([
    ['Ready', node(), true, 'is Ready'],
    ['with other taints', node({ spec: { taints: [{ key: 'gpu', effect: 'NoSchedule' }] } }), true, 'is Ready'],
    [
      'that is not Ready',
      node({ status: conditions('False', { reason: 'CniNotReady' }) }),
      false,
      'False (CniNotReady)',
    ],
    [
      'that is silent',
      node({ status: conditions('Unknown', { reason: 'NodeStatusUnknown', message: 'Kubelet stopped' }) }),
      false,
      'Unknown (NodeStatusUnknown: Kubelet stopped)',
    ],
    ['of a status that is none', node({ status: conditions('true') }), false, 'is Unknown'],
    ['without conditions', node({ status: {} }), false, 'has not reported yet'],
    [
      'with conditions that are no list',
      node({ status: { conditions: { Ready: 'True' } } }),
      false,
      'not reported yet',
    ],
    ['that is cordoned', node({ spec: { unschedulable: true } }), false, 'cordoned'],
    [
      'with a NoExecute taint',
      node({ spec: { taints: [{ key: 'node.kubernetes.io/not-ready', effect: 'NoExecute' }] } }),
      false,
      'NoExecute taint node.kubernetes.io/not-ready',
    ],
    ['of another name', node({ metadata: { name: 'rack2' } }), false, 'another node'],
    ['with the uid of a former one', node({ metadata: { uid: 'former' } }), false, 'the former one'],
    ['without a uid', node({ metadata: { uid: '' } }), false, 'no uid'],
    ['of last week', node({ metadata: { creationTimestamp: '2026-11-13T10:00:00Z' } }), false, 'the former one'],
    [
      'that a clock is 2 min behind for',
      node({ metadata: { creationTimestamp: '2026-11-20T09:58:00Z' } }),
      true,
      'Ready',
    ],
    [
      'that is being deleted',
      node({ metadata: { deletionTimestamp: '2026-11-20T11:00:00Z' } }),
      false,
      'being deleted',
    ],
    ['that is a Status', { kind: 'Status', code: 200 }, false, 'did not answer with a Node'],
    ['that is a list', [], false, 'did not answer with a Node'],
    ['that is nothing', undefined, false, 'did not answer with a Node'],
  ])('%s', (_, json, ready, message) => {
    const found = nodeReadiness(json, { name: 'rack1', formerUid: 'former', createdAfterMs: createdMs });
    expect(found).toEqual({ ready, message: expect.stringContaining(message) });
  });

  it('cannot steer a terminal by its texts', () => {
    const status = conditions('False', { reason: 'x\u001b[2J\r\ny' });
    expect(nodeReadiness(node({ status }), { name: 'rack1' }).message).toBe('Ready of node "rack1" is False (x y)');
  });
});
