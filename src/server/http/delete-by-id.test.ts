import { expect, it } from 'vitest';
import { encodeRecord } from '../../core/state/codec.ts';
import { createMemoryStore } from '../../store/memory/memory-store.ts';
import type { Store } from '../../store/store.ts';
import { startTestServer } from '../testing.ts';

it('deletes nothing that has taken the name of what was meant', async () => {
  const memory = createMemoryStore();
  let before: (() => Promise<void>) | undefined;
  const store: Store = {
    ...memory,
    get: (key) => memory.get(key),
    list: (prefix, options) => memory.list(prefix, options),
    watch: (prefix, after, signal) => memory.watch(prefix, after, signal),
    compact: (revision) => memory.compact(revision),
    close: () => memory.close(),
    async commit(conditions, writes) {
      const first = before;
      before = undefined;
      await first?.();
      return memory.commit(conditions, writes);
    },
  };
  const server = await startTestServer({ store });
  const { client } = server;
  await client.create('image', { metadata: { name: 'tiny' }, spec: { source: 'file:///tmp/tiny.qcow2' } });
  const old = await client.create('instance', { metadata: { name: 'a' }, spec: { image: 'tiny', cpus: 1 } });
  const { revision: _, ...metadata } = old.metadata;
  const another = {
    ...old,
    metadata: {
      ...metadata,
      revision: 0,
      id: `${old.metadata.id.slice(0, -1)}${old.metadata.id.endsWith('0') ? '1' : '0'}`,
    },
  };
  // Another control plane deletes it and makes one of its name, just before.
  before = async () => {
    await memory.commit([], [{ key: 'instances/default/a', value: null }]);
    await memory.commit([], [{ key: 'instances/default/a', value: encodeRecord(another) }]);
  };
  await expect(client.delete('instance', old.metadata.id)).rejects.toMatchObject({ code: 'NotFound' });
  const left = await client.get('instance', 'a');
  expect(left.metadata).toMatchObject({ id: another.metadata.id });
  expect(left.metadata.deletionRequestedAtMs).toBeUndefined();
  await server.close();
});
