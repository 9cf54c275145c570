import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addRecord, commitPlan, testCache, testHost } from '../../testing.ts';
import type { Provider } from '../../state/records.ts';
import { claim } from '../ledger.ts';
import { poolAggregate } from '../pool-aggregate.ts';
import { candidateIndexOf } from './indexed-providers.ts';
import { findCandidates } from './search.ts';
import { testGroup as group, testQuestion as ask } from './testing.ts';

const part = (id: string, parent: string | null, changes: Partial<Provider> = {}): Provider => ({
  kind: 'provider',
  id,
  host: 'h1',
  parent,
  generation: 1,
  inventories: {},
  traits: [],
  aggregates: [],
  ...changes,
});

describe('providers as trees', () => {
  it('show a claim at once, without a tree being made again', () => {
    const [host, provider] = testHost('h1', { capacity: { VCPU: 2 } });
    const cache = testCache([host, provider]);
    const index = candidateIndexOf(cache);
    const question = ask([group('', { VCPU: 2 })]);
    expect(findCandidates(index, question).requests).toHaveLength(1);
    const tree = index.tree(provider.id);
    const consumer = { id: 'inst_1', incarnation: 1, project: 'default', name: 'web' };
    const changes = claim(cache, { consumer, host: 'h1', held: { [provider.id]: { VCPU: 1 } }, driver: 'fake' });
    commitPlan(cache, { changes });
    expect(findCandidates(index, question).requests).toHaveLength(0);
    expect(index.tree(provider.id)).toBe(tree);
    expect(tree[0]?.generation).toBe(2);
  });

  it('are in the aggregate of the pool of their host', () => {
    const [host, provider] = testHost('h1', { spec: { pool: 'fast' } });
    const cache = testCache([host, provider, part('dev', provider.id)]);
    const index = candidateIndexOf(cache);
    const aggregates = () => index.tree(provider.id).map((each) => each.aggregates);
    expect(aggregates()).toEqual([[poolAggregate('fast')], [poolAggregate('fast')]]);
    addRecord(cache, { ...host, spec: { ...host.spec, pool: 'slow' } });
    expect(aggregates()).toEqual([[poolAggregate('slow')], [poolAggregate('slow')]]);
  });

  it('are the same after any changes as when made from the records', () => {
    const id = fc.nat({ max: 5 });
    const change = fc.record({ id, parent: fc.option(id), gone: fc.boolean(), shares: fc.boolean() });
    fc.assert(
      fc.property(fc.array(change, { maxLength: 20 }), (changes) => {
        const cache = testCache([]);
        const index = candidateIndexOf(cache);
        const shape = (of: typeof index) => ({
          trees: [...of.roots()].sort().map((root) =>
            of
              .tree(root)
              .map((each) => [each.id, each.root, each.traits])
              .sort(),
          ),
          sharing: [...of.sharing()].sort(),
          nested: of.nested(),
          byId: [0, 1, 2, 3, 4, 5].map((at) => of.provider(`p${at}`)?.root),
        });
        for (const { id: at, parent, gone, shares } of changes) {
          // Parents have smaller numbers, so that no provider is above itself.
          const above = parent !== null && parent < at ? `p${parent}` : null;
          const key = `providers/p${at}`;
          const value = gone ? null : part(`p${at}`, above, { traits: shares ? ['MISC_SHARES_VIA_AGGREGATE'] : [] });
          cache.apply([{ key, value, revision: cache.revision + 1 }], cache.revision + 1);
          const made = testCache([...cache.list('provider')].map((entry) => entry.value));
          expect(shape(index)).toEqual(shape(candidateIndexOf(made)));
        }
      }),
      { numRuns: 200 },
    );
  });
});
