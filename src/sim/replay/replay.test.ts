import { describe, expect, it } from 'vitest';
import { profileNames } from '../../api/resources/profile.ts';
import { fleetFromList, parseFleetShape, type ReplayFleet } from './replay-fleet.ts';
import { plotSvg, sparkline } from './replay-plot.ts';
import { type Replayed, type ReplayOptions, replay } from './replay.ts';
import { rowsOf } from './trace-rows.ts';
import { readTrace, type Trace } from './trace.ts';

function traceOf(header: string, ...rows: readonly string[]): Trace {
  return readTrace(new TextEncoder().encode([header, ...rows].join('\n')), 'test.csv');
}

const plain = 'id,arrive_s,depart_s,cpu_milli,mem_mib';

function run(trace: Trace, fleet: string | ReplayFleet, changes: Partial<ReplayOptions> = {}): Replayed {
  return replay({
    trace,
    fleet: typeof fleet === 'string' ? parseFleetShape(fleet) : fleet,
    profile: 'avoid-fragmentation',
    movesPerArrival: 0,
    clockMs: () => 0,
    ...changes,
  });
}

describe('a replay', () => {
  it('adds hosts as they are needed, and counts the hours in which they are in use', () => {
    const trace = traceOf(plain, 'a,0,3600,4000,1024', 'b,0,7200,4000,1024', 'c,0,3600,4000,1024');
    expect(run(trace, '8x16GiB')).toMatchObject({
      arrivals: 3,
      placed: 3,
      hosts: 2,
      hostsPeak: 2,
      hostHours: 3, // two for an hour, then the one with b
      boundHostHours: 3,
      ratio: 1,
    });
  });

  it('lets instances leave before others come in the same second', () => {
    const trace = traceOf(plain, 'a,0,100,8000,1', 'b,100,200,8000,1');
    expect(run(trace, '1x8x16GiB')).toMatchObject({ placed: 2, hostsPeak: 1, waits: { delayed: 0 } });
  });

  it('makes wait what does not fit, who asks alike in order, and all live as long as they would have', () => {
    const trace = traceOf(plain, 'a,0,100,8000,1', 'b,10,60,6000,1', 'c,20,30,6000,1', 'd,20,40,2000,1');
    // b comes at 100 and leaves at 150, d beside it at 100; c at 150.
    expect(run(trace, '1x8x16GiB')).toMatchObject({
      placed: 4,
      waiting: 0,
      spanS: 160,
      waits: { delayed: 3, p50S: 80, p99S: 130, maxS: 130 },
    });
  });

  it('says what waits at the end, is too large for any host, or is gone in the second it came', () => {
    const trace = traceOf(plain, 'a,0,,8000,1', 'b,1,,8000,1', 'c,2,,9000,1', 'd,3,3,1000,1');
    expect(run(trace, '1x8x16GiB')).toMatchObject({ arrivals: 2, placed: 1, waiting: 1, impossible: 1, momentary: 1 });
  });

  it('keeps a group to so many on a host', () => {
    const trace = traceOf(
      `${plain},group,max_per_host`,
      ...['a', 'b', 'c'].map((id) => `${id},0,3600,1000,1,web,1`),
      'd,0,3600,1000,1,,0',
    );
    expect(run(trace, '8x16GiB')).toMatchObject({ placed: 4, hosts: 3, boundHostHours: 3 });
  });

  it('moves instances away from hosts that are hardly used', () => {
    const rows = Array.from({ length: 40 }, (_, i) => `${i},0,${i % 4 === 0 ? 9000 : 100},2000,1`);
    const trace = traceOf(plain, ...rows, 'last,8000,9000,1000,1');
    const still = run(trace, '8x16GiB');
    const moved = run(trace, '8x16GiB', { movesPerArrival: 1 / 5 });
    expect(moved.moves).toMatchObject({ made: 7, budget: 8, hostsEmptied: 7 });
    expect(moved.hostHours).toBeLessThan(still.hostHours / 2);
    expect(moved.boundHostHours).toBe(still.boundHostHours);
  });

  it('has room for large ones where moves have made it', () => {
    // b and c are left, half a host each on two hosts, when e asks for a whole one.
    const trace = traceOf(
      plain,
      'a,0,50,4000,1',
      'b,0,9000,4000,1',
      'c,1,9000,4000,1',
      'd,1,50,4000,1',
      'e,5000,6000,8000,1',
    );
    expect(run(trace, '2x8x16GiB')).toMatchObject({ waits: { maxS: 4000 } });
    expect(run(trace, '2x8x16GiB', { movesPerArrival: 1 })).toMatchObject({ waits: { maxS: 0 } });
  });

  it('hands out GPUs of the model that is asked for, and shares of them', () => {
    const list = ['sn,cpu_milli,memory_mib,gpu,model', 'a,16000,65536,2,T4', 'b,16000,65536,2,A100'];
    const fleet = fleetFromList(new TextEncoder().encode(list.join('\n')), 'hosts.csv');
    const trace = traceOf(
      `${plain},gpu,gpu_milli,gpu_spec`,
      'a,0,,1000,1,2,1000,A100',
      'b,1,,1000,1,1,1000,A100|T4',
      'c,2,,1000,1,1,500,',
      'd,3,,1000,1,1,500,',
      'e,4,,1000,1,1,100,',
      'f,5,,1000,1,1,1000,V100',
    );
    expect(run(trace, fleet)).toMatchObject({ placed: 4, waiting: 1, impossible: 1, gpuAllocatedPercent: 100 });
  });

  it.each(profileNames)('runs with the profile %s', (profile) => {
    const rows = Array.from({ length: 50 }, (_, i) => `${i},${i},${i + 20},${1000 * (1 + (i % 4))},${1024 * (i % 7)}`);
    expect(run(traceOf(plain, ...rows), '16x32GiB', { profile })).toMatchObject({ placed: 50, waiting: 0 });
  });

  it('is the same every time', () => {
    const rows = Array.from(
      { length: 200 },
      (_, i) => `${i},${i},${i + (i % 30)},${500 * (1 + (i % 9))},${512 * (i % 7)}`,
    );
    const trace = traceOf(plain, ...rows);
    const once = () => run(trace, '8x16GiB', { movesPerArrival: 0.1 });
    expect(once()).toEqual(once());
  });
});

describe('some rows of a trace', () => {
  it('are a trace of their own', () => {
    const trace = traceOf(`${plain},group`, 'a,0,,1,10,x', 'b,1,,2,20,y', 'c,2,,3,30,x');
    const some = rowsOf(trace, [2, 0]);
    expect([some.ids, [...some.cpuMilli], [...some.departS]]).toEqual([
      ['c', 'a'],
      [3, 1],
      [-1, -1],
    ]);
    expect(some.group.names[some.group.of[0] ?? 0]).toBe('x');
  });
});

describe('the plot of a replay', () => {
  it('is SVG that stands alone, with its text escaped', () => {
    const replayed = run(traceOf(plain, 'a,0,3600,4000,1024'), '8x16GiB');
    const svg = plotSvg('a < b', [replayed]);
    expect(svg).toMatch(/^<svg xmlns="http:\/\/www.w3.org\/2000\/svg"[\s\S]*a &lt; b[\s\S]*<polyline[\s\S]*<\/svg>\n$/);
    expect(svg).not.toContain('NaN');
  });
  it('is small in letters', () => {
    expect(sparkline([0, 1, 2, 3, 4, 5, 6, 7], 8, 7)).toBe('▁▂▃▄▅▆▇█');
    expect(sparkline([0, 0, 4, 4], 2, 4)).toBe('▁█');
    expect(sparkline([], 10, 0)).toBe('');
  });
});
