import { describe, expect, it } from 'vitest';
import { readNodes } from './read-nodes.ts';

const good = { name: 'metal-0', cpu: 8, memory: 1024 };
const others = Array.from({ length: 199 }, (_, i) => ({ ...good, name: `other-${i}` }));

describe('a list that is refused as a whole', () => {
  it.each<[string, unknown, RegExp]>([
    ['null', null, /not a list/],
    ['an object', { nodes: [] }, /not a list/],
    ['a string', '[]', /not a list/],
    ['the same name twice', [good, good], /two nodes are named "metal-0"/],
    ['the same name in other letters', [good, { ...good, name: 'METAL-0' }], /two nodes are named/],
    ['100,001 nodes', Array.from({ length: 100_001 }, () => good), /at most 100000/],
    ['3 of 201 bad', [...others, 1, 2], /^2 of its|^3 of its/],
    ['one bad of one', [{ ...good, cpu: -1 }], /the first is "metal-0": cpu is -1, below 1/],
    ['one name of 10 MB', [{ ...good, name: 'x'.repeat(10_000_000) }], /name has another form$/],
  ])('%s', (name, json, why) => {
    const list = readNodes(name === '3 of 201 bad' ? [...others, 1, 2, 3] : json);
    expect(list.ok ? 'read' : list.why).toMatch(why);
    expect(list.ok ? 0 : list.why.length).toBeLessThan(300);
  });
});

describe('a node that is skipped', () => {
  it.each<[string, unknown, string]>([
    ['null', null, 'it is not an object'],
    ['a list', [], 'it is not an object'],
    ['no name', { cpu: 1, memory: 1 }, 'name is missing'],
    ['an empty name', { ...good, name: '' }, 'name has another form'],
    ['capitals', { ...good, name: 'Metal' }, 'name has another form'],
    ['NUL in the name', { ...good, name: 'a\0b' }, 'name has another form'],
    ['a lone surrogate', { ...good, name: 'a\ud800' }, 'name has another form'],
    ['a number for a name', { ...good, name: 7 }, 'name has another form'],
    ['no CPUs', { ...good, cpu: 0 }, 'cpu is 0, below 1'],
    ['CPUs as text', { ...good, cpu: '4' }, 'cpu is not a number'],
    ['half a CPU', { ...good, cpu: 1.5 }, 'cpu is 1.5, not a whole number'],
    ['NaN', { ...good, cpu: Number.NaN }, 'cpu is not a number'],
    ['infinite memory', { ...good, memory: Number.POSITIVE_INFINITY }, 'memory is not a number'],
    ['1e308 of memory', { ...good, memory: 1e308 }, 'memory is 1e+308, over 4294967296'],
    ['no memory', { name: 'a', cpu: 1 }, 'memory is missing'],
    ['negative storage', { ...good, storage: -1 }, 'storage is -1, below 0'],
    ['negative usage', { ...good, usage_cpu: -0.5 }, 'usage_cpu is -0.5, below 0'],
    ['usage over the total', { ...good, usage_mem: 1025 }, 'usage_mem is 1025, over 1024'],
    ['negative guests', { ...good, max_vms: -1 }, 'max_vms is -1, below 0'],
    ['an address out of range', { ...good, ip: '999.1.1.1' }, 'ip is not an address'],
    ['a hostname as address', { ...good, ip: 'a.example' }, 'ip has another form'],
    ['a bad pool', { ...good, pool: 'Edge!' }, 'pool has another form'],
    ['text for dedicated', { ...good, dedicated: 'yes' }, 'dedicated is neither true nor false'],
    ['control characters in the model', { ...good, model: 'a\u001b[31m' }, 'model has another form'],
  ])('%s', (_name, node, why) => {
    const list = readNodes([...others, node]);
    if (!list.ok) throw new Error(list.why);
    expect([...list.skipped.values()]).toEqual([why]);
    expect(list.nodes).toHaveLength(199);
  });
});

it('reads all fields; null is as good as absent, others are ignored', () => {
  const full = {
    ...{ name: 'm1', cpu: 8, memory: 1024, storage: 50, usage_cpu: 1.2, usage_mem: 100, pool: 'edge', ip: '10.0.0.1' },
    ...{ dedicated: true, model: 'R640', max_vms: 5, current_vms: 2, rack: 'r1', ['__proto__']: 1 },
  };
  const empty = {
    name: 'm2',
    cpu: 8,
    memory: 1024,
    storage: null,
    pool: null,
    ip: 'fd00::1',
    max_vms: 1,
    current_vms: 3,
  };
  expect(readNodes([full, empty])).toEqual({
    ok: true,
    skipped: new Map(),
    nodes: [
      {
        ...{ name: 'm1', capacity: { VCPU: 8, MEMORY_MB: 1024, DISK_GB: 50 }, usage: { VCPU: 2, MEMORY_MB: 100 } },
        ...{ dedicated: true, model: 'R640', pool: 'edge', ip: '10.0.0.1', guestsMax: 5, guests: 2 },
      },
      {
        ...{ name: 'm2', capacity: { VCPU: 8, MEMORY_MB: 1024 }, usage: { VCPU: 0, MEMORY_MB: 0 } },
        ...{ dedicated: false, ip: 'fd00::1', guestsMax: 1, guests: 3 },
      },
    ],
  });
});
