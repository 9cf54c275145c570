import { describe, expect, it } from 'vitest';
import { type Handler, runBerth } from '../testing.ts';

const uuid = '66666666-6666-4666-8666-666666666666';
const consumer = '77777777-7777-4777-8777-777777777777';
const provider = { uuid, name: 'edge', generation: 3, parent_provider_uuid: null };

const handler: Handler = ({ path, query }) => {
  switch (path) {
    case '/placement/resource_providers':
      return { json: { resource_providers: query['name'] === 'none' ? [] : [provider] } };
    case `/placement/resource_providers/${uuid}/inventories`:
      return { json: { inventories: { VCPU: { total: 8, reserved: 1, allocation_ratio: 2 } } } };
    case `/placement/resource_providers/${uuid}/usages`:
      return { json: { usages: { VCPU: 5 } } };
    case `/placement/resource_providers/${uuid}/allocations`:
      return { json: { allocations: { [consumer]: { resources: { VCPU: 5 } } } } };
    case `/placement/allocations/${consumer}`:
      return { json: { allocations: {}, project_id: 'p', consumer_type: 'INSTANCE' } };
    default:
      return undefined;
  }
};

describe('berth ledger', () => {
  it('lists the providers', async () => {
    const { stdout } = await runBerth(['ledger', 'ls'], { handler });
    expect(stdout).toBe(
      `NAME  UUID                                  PARENT  GENERATION\nedge  ${uuid}  -                3\n`,
    );
  });

  it('shows what a provider has and who holds it', async () => {
    const { stdout, requests } = await runBerth(['ledger', 'show', 'edge'], { handler });
    expect(requests[0]?.query).toEqual({ name: 'edge' });
    expect(stdout.split('\n')).toEqual([
      `edge (${uuid}), generation 3`,
      '',
      'CLASS  TOTAL  RESERVED  RATIO  USED',
      'VCPU       8         1      2     5',
      '',
      'CONSUMER                              TYPE      PROJECT  HOLDS',
      `${consumer}  INSTANCE  p        5 VCPU`,
      '',
    ]);
  });

  it('says that there is no such provider', async () => {
    const { stderr, exitCode } = await runBerth(['ledger', 'show', 'none'], { handler });
    expect(exitCode).toBe(2);
    expect(stderr).toContain('there is no provider "none"');
  });
});
