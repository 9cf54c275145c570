import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { readTrace } from './trace.ts';

const header = 'id,group,arrive_s,depart_s,cpu_milli,mem_mib,disk_mib,gpu,gpu_milli,net_pct,gpu_spec,max_per_host,node';
const rows = [
  'a,web,0,300,2000,3584,10,0,0,25,,8,NODE1',
  'b,,5,,12000,16384,0,1,460,0,T4|P100,0,',
  'c,web,5,5,1,1,0,8,1000,0,T4|P100,8,NODE1',
];
const file = (...lines: readonly string[]) => new TextEncoder().encode(`${lines.join('\n')}\n`);
const whole = file(header, ...rows);

describe('a trace', () => {
  it('is read into columns', () => {
    const trace = readTrace(whole, 'vms.csv');
    expect(trace.rows).toBe(3);
    expect(trace.ids).toEqual(['a', 'b', 'c']);
    expect([...trace.arriveS]).toEqual([0, 5, 5]);
    expect([...trace.cpuMilli]).toEqual([2000, 12000, 1]);
    expect([...trace.memoryMiB]).toEqual([3584, 16384, 1]);
    expect([...trace.diskMiB]).toEqual([10, 0, 0]);
    expect([...trace.gpus]).toEqual([0, 1, 8]);
    expect([...trace.gpuMilli]).toEqual([0, 460, 1000]);
    expect([...trace.networkPercent]).toEqual([25, 0, 0]);
    expect([...trace.maxPerHost]).toEqual([8, 0, 8]);
  });

  it('says -1 for an instance that never departs', () => {
    expect([...readTrace(whole, 'vms.csv').departS]).toEqual([300, -1, 5]);
  });

  it('keeps shared names once', () => {
    const { group, gpuSpec, recordedHost } = readTrace(whole, 'vms.csv');
    expect(group).toEqual({ names: ['', 'web'], of: Int32Array.of(1, 0, 1) });
    expect(gpuSpec).toEqual({ names: ['', 'T4|P100'], of: Int32Array.of(0, 1, 1) });
    expect(recordedHost).toEqual({ names: ['', 'NODE1'], of: Int32Array.of(1, 0, 1) });
  });

  it('may be gzipped', () => {
    expect(readTrace(gzipSync(whole), 'vms.csv.gz')).toEqual(readTrace(whole, 'vms.csv'));
  });

  it('may lack what it has none of, and order its columns freely', () => {
    const trace = readTrace(file('mem_mib,cpu_milli,id,depart_s,arrive_s', '1024,2000,a,,7'), 'mine.csv');
    expect([trace.memoryMiB[0], trace.cpuMilli[0], trace.arriveS[0], trace.gpus[0], trace.group.of[0]]).toEqual([
      1024, 2000, 7, 0, 0,
    ]);
  });

  it('may end its lines as Windows does, and end without a last one', () => {
    const text = new TextEncoder().encode([header, ...rows].join('\r\n'));
    expect(readTrace(text, 'vms.csv')).toEqual(readTrace(whole, 'vms.csv'));
  });

  it.each([
    ['no number', [header, 'a,,0,,two,1,0,0,0,0,,0,'], 'line 2, column "cpu_milli": "two" is not a whole number'],
    [
      'a negative one',
      [header, rows[0], 'a,,0,,-2,1,0,0,0,0,,0,'],
      'line 3, column "cpu_milli": "-2" is not a whole number',
    ],
    ['a fraction', [header, 'a,,0,,1.5,1,0,0,0,0,,0,'], 'line 2, column "cpu_milli": "1.5" is not a whole number'],
    ['a huge one', [header, 'a,,0,,1,99999999999,0,0,0,0,,0,'], 'line 2, column "mem_mib": "99999999999" is too large'],
    ['no arrival', [header, 'a,,,,1,1,0,0,0,0,,0,'], 'line 2, column "arrive_s": it is empty'],
    [
      'a departure before the arrival',
      [header, 'a,,9,8,1,1,0,0,0,0,,0,'],
      'line 2, column "depart_s": 8 is before the arrival (9)',
    ],
    ['rows out of order', [header, rows[1], rows[0]], 'line 3, column "arrive_s": 0 is before the row above (5)'],
    ['too few cells', [header, 'a,,0'], 'line 2: 3 cells, and the header names 13 columns'],
    ['quotes', [header, '"a",,0,,1,1,0,0,0,0,,0,'], 'line 2, column "id": quoted cells are not supported'],
    ['a misspelt column', [header.replace('gpu_spec', 'gpu_sepc')], 'line 1: unknown column "gpu_sepc"; known are'],
    ['no column of arrivals', ['id,depart_s,cpu_milli,mem_mib'], 'line 1: no column "arrive_s"; there are'],
    ['a column twice', ['id,id'], 'line 1: the column "id" is there twice'],
  ])('refuses %s, saying where', (_, lines, message) => {
    expect(() => readTrace(file(...lines.filter((line) => line !== undefined)), 'vms.csv')).toThrow(
      `cannot read vms.csv, ${message}`,
    );
  });

  it('refuses an empty file and a torn one', () => {
    expect(() => readTrace(new Uint8Array(), 'vms.csv')).toThrow('cannot read vms.csv: it is empty');
    expect(() => readTrace(gzipSync(whole).subarray(0, 40), 'vms.csv.gz')).toThrow('cannot unpack vms.csv.gz');
  });
});
