import { describe, expect, it } from 'vitest';
import type { InstanceSpec } from '../../api/resources/instance.ts';
import { placement } from '../controllers/placement.ts';
import type { Cache } from '../state/cache.ts';
import { keys } from '../state/keys.ts';
import { addRecord, commitPlan, testContext, testFleet, testHost, type TestHost, testInstance } from '../testing.ts';
import { explain } from './explain.ts';
import { fleetOf } from '../scheduler/fleet.ts';
import { requestOf } from '../scheduler/request.ts';
import { schedule } from '../scheduler/schedule.ts';

const ctx = testContext();
const four = (labels: Record<string, string> = {}): TestHost => ({ capacity: { VCPU: 4, MEMORY_MB: 8192 }, labels });

function place(cache: Cache, name: string, spec: Partial<InstanceSpec>, labels: Record<string, string> = {}): void {
  addRecord(cache, testInstance(name, { cpus: 1, memoryMiB: 512, ...spec }, {}, { labels }));
  commitPlan(cache, placement.reconcile(cache, keys.instance('default', name), ctx));
}

/** The additional hosts that would be enough. */
function more(cache: Cache, spec: Partial<InstanceSpec>, labels: Record<string, string> = {}): string | undefined {
  const asked = testInstance('web', { cpus: 1, memoryMiB: 512, ...spec }, {}, { labels });
  return explain(cache, asked).nearest?.find(({ change }) => change === 'AddHost')?.message;
}

const db = { app: 'db' };
const apart: InstanceSpec['placement'] = {
  antiAffinity: [{ to: db, by: 'host', required: true }],
  spread: [{ by: 'zone', maxSkew: 1, required: true }],
};

describe('one more host', () => {
  it('is in the zone where it must be, though a host of the same hardware is in none', () => {
    const cache = testFleet({ h1: four(), h2: four({ zone: 'a' }), h3: four({ zone: 'b' }) });
    for (const name of ['a', 'b']) place(cache, name, { placement: apart }, db);
    expect(more(cache, { placement: apart }, db)).toBe('one more host like h2 (4 CPUs, 8 GiB memory, zone a)');
  });

  it('is beside those who are there, and does not take their place', () => {
    // Zone a has one more than b, which is full: another host in a would violate the spread, even an empty one.
    const cache = testFleet({ h1: four({ zone: 'a' }), h2: four({ zone: 'b' }) });
    place(cache, 'one', { placement: { hostLabels: { zone: 'a' } } }, db);
    place(cache, 'full', { cpus: 4, placement: { hostLabels: { zone: 'b' } } });
    const spread: InstanceSpec['placement'] = { spread: [{ by: 'zone', maxSkew: 1, required: true }] };
    expect(more(cache, { placement: spread }, db)).toBe('one more host like h2 (4 CPUs, 8 GiB memory, zone b)');
  });

  it('is near to a member on a host that is full', () => {
    const cache = testFleet({ h1: four({ zone: 'a' }) });
    place(cache, 'one', { cpus: 4 }, db);
    const near: InstanceSpec['placement'] = { affinity: [{ to: db, by: 'zone', required: true }] };
    expect(more(cache, { placement: near })).toBe('one more host like h1 (4 CPUs, 8 GiB memory, zone a)');
  });

  it('is found among many domains', () => {
    const racks = Array.from({ length: 100 }, (_, i) => `r${String(i).padStart(3, '0')}`);
    const cache = testFleet(Object.fromEntries(racks.map((rack) => [`h-${rack}`, four({ rack })])));
    const keptAway: InstanceSpec['placement'] = { antiAffinity: [{ to: db, by: 'rack', required: true }] };
    for (const rack of racks) {
      const hostLabels = { rack };
      if (rack === 'r077') place(cache, `full-${rack}`, { cpus: 4, placement: { hostLabels } });
      else place(cache, `db-${rack}`, { placement: { hostLabels } }, db);
    }
    expect(more(cache, { placement: keptAway }, db)).toContain('like h-r077 ');
  });

  it('is offered of the hardware that is enough', () => {
    const large: TestHost = { capacity: { VCPU: 8, MEMORY_MB: 8192 } };
    const cache = testFleet({ h1: four(), h2: large });
    place(cache, 'full', { cpus: 8 });
    expect(more(cache, { cpus: 6 })).toBe('one more host like h2 (8 CPUs, 8 GiB memory)');
  });

  it('leaves no trace', () => {
    const cache = testFleet({ h1: four({ zone: 'a' }), h2: four({ zone: 'b' }) });
    for (const name of ['a', 'b']) place(cache, name, { cpus: 4 });
    const asked = testInstance('web', { cpus: 4, memoryMiB: 512 });
    const refusedBefore = schedule(cache, requestOf(cache, asked));
    for (let i = 0; i < 20; i++) expect(more(cache, { cpus: 4 })).toBe('one more host like h1 (4 CPUs, 8 GiB memory)');
    expect(schedule(cache, requestOf(cache, asked))).toEqual(refusedBefore);
    const { length, hosts } = fleetOf(cache);
    const gone = Array.from({ length }, (_, slot) => slot).filter((slot) => !hosts[slot]);
    for (const column of fleetOf(cache).columns()) expect(gone.some((slot) => column.capacity(slot) > 0)).toBe(false);
    for (const record of testHost('h3', four())) addRecord(cache, record);
    expect(schedule(cache, requestOf(cache, asked))).toMatchObject({ placed: true, host: 'h3', hosts: 3 });
  });
});
