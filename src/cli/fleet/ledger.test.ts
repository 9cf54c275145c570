import { describe, expect, it } from 'vitest';
import { errorCodes } from '../../api/errors.ts';
import { type Handler, runBerth } from '../testing.ts';

const uuid = '66666666-6666-4666-8666-666666666666';
const consumer = '77777777-7777-4777-8777-777777777777';
const provider = { uuid, name: 'edge', generation: 3, parent_provider_uuid: null };

const handler: Handler = ({ path }) => {
  switch (path) {
    case '/placement/resource_providers':
      return { json: { resource_providers: [provider] } };
    case '/v1/ledger/edge':
      return {
        json: {
          ...{ uuid, name: 'edge', generation: 3 },
          inventories: { VCPU: { total: 8, reserved: 1, allocationRatio: 2, used: 5 } },
          allocations: [{ consumer, type: 'INSTANCE', project: 'p', amounts: { VCPU: 5 } }],
        },
      };
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
    expect(requests).toHaveLength(1);
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
    const message = 'there is no provider "none"';
    const { stderr, exitCode } = await runBerth(['ledger', 'show', 'none'], {
      handler: () => ({ status: 404, json: { error: { code: 'NotFound', message } } }),
    });
    expect(exitCode).toBe(errorCodes.NotFound.exitCode);
    expect(stderr).toContain(message);
    expect(stderr).toContain('"berth ledger ls" lists the providers');
  });

  it('says that the token does not permit it', async () => {
    const detail = 'Access was denied to this resource.\n\n Policy does not allow it.';
    const refused: Handler = () => ({ status: 403, json: { errors: [{ status: 403, title: 'Forbidden', detail }] } });
    const { stderr, exitCode } = await runBerth(['ledger', 'ls'], { handler: refused });
    expect(exitCode).toBe(4);
    expect(stderr).toContain('cannot list providers: Access was denied to this resource. Policy does not allow it.');
  });
});
