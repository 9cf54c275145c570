// A recorded workload in the common form: one instance a row, in order of arrival, held as columns. It is only read here; what a
// replay makes of it is elsewhere. A million rows take about 100 MB.

import { checkColumns, type CsvTable, readCsvTable } from './csv-table.ts';

/** Values that many rows share, each kept once. A row names its value by place. */
export interface SharedNames {
  readonly names: readonly string[];
  /** Per row: which of `names`; '' is a name like any other. */
  readonly of: Int32Array;
}

/** Columns of equal length; row i of each tells of one instance. Rows are in order of `arriveS`. */
export interface Trace {
  readonly rows: number;
  readonly ids: readonly string[];
  /** Tenant's batch, or app. Members arrive together or serve together; '' is no group. */
  readonly group: SharedNames;
  /** Seconds from the trace's start. */
  readonly arriveS: Int32Array;
  /** Never before `arriveS`; -1 for an instance that is still there at the end. */
  readonly departS: Int32Array;
  readonly cpuMilli: Int32Array;
  readonly memoryMiB: Int32Array;
  readonly diskMiB: Int32Array;
  readonly gpus: Int32Array;
  /** The share of ONE GPU, 1000 for a whole one; told only where `gpus` is 1. */
  readonly gpuMilli: Int32Array;
  /** Percent of one network card. */
  readonly networkPercent: Int32Array;
  /** Accepted GPU models with `|` between them; '' is any. */
  readonly gpuSpec: SharedNames;
  /** Maximum number of the group on one host; 0 is no limit. */
  readonly maxPerHost: Int32Array;
  /** The host that the recorded system chose; '' where unknown. */
  readonly recordedHost: SharedNames;
}

const required = ['id', 'arrive_s', 'depart_s', 'cpu_milli', 'mem_mib'];
const optional = ['group', 'disk_mib', 'gpu', 'gpu_milli', 'net_pct', 'gpu_spec', 'max_per_host', 'node'];

/** Reads `vms*.csv` or `vms*.csv.gz`. Throws with file, line and column when it cannot; `source` is what messages call the file. */
export function readTrace(packed: Uint8Array, source: string): Trace {
  const table = readCsvTable(packed, source);
  checkColumns(table, { source, required, optional });
  const id = table.place('id');
  const arrive = table.place('arrive_s');
  const depart = table.place('depart_s');
  const ids: string[] = [];
  const arriveS = new Int32Array(table.linesMax);
  const departS = new Int32Array(table.linesMax);
  const integers = ['cpu_milli', 'mem_mib', 'disk_mib', 'gpu', 'gpu_milli', 'net_pct', 'max_per_host'].map((column) =>
    integerColumn(table, column),
  );
  const shared = ['group', 'gpu_spec', 'node'].map((column) => sharedColumn(table, column));
  let rows = 0;
  table.forEachLine((line) => {
    ids.push(line.text(id));
    arriveS[rows] = line.integer(arrive);
    departS[rows] = line.integer(depart, -1);
    const arrived = arriveS[rows] ?? 0;
    const before = arriveS[rows - 1] ?? 0;
    const departed = departS[rows] ?? 0;
    if (arrived < before)
      line.fault(arrive, `${arrived} is before the row above (${before}); sort the rows by arrival`);
    if (departed !== -1 && departed < arrived)
      line.fault(depart, `${departed} is before the arrival (${arrived}); leave it empty for an instance that stays`);
    for (const { place, values } of integers) if (place >= 0) values[rows] = line.integer(place, 0);
    for (const { place, of, placeOf } of shared) if (place >= 0) of[rows] = placeOf(line.text(place));
    rows += 1;
  });
  const [cpuMilli, memoryMiB, diskMiB, gpus, gpuMilli, networkPercent, maxPerHost] = integers.map(({ values }) =>
    values.subarray(0, rows),
  );
  const [group, gpuSpec, recordedHost] = shared.map(({ names, of }) => ({ names, of: of.subarray(0, rows) }));
  if (!cpuMilli || !memoryMiB || !diskMiB || !gpus || !gpuMilli || !networkPercent || !maxPerHost)
    throw new Error('a column was lost');
  if (!group || !gpuSpec || !recordedHost) throw new Error('a column was lost');
  return {
    rows,
    ids,
    group,
    arriveS: arriveS.subarray(0, rows),
    departS: departS.subarray(0, rows),
    cpuMilli,
    memoryMiB,
    diskMiB,
    gpus,
    gpuMilli,
    networkPercent,
    gpuSpec,
    maxPerHost,
    recordedHost,
  };
}

function integerColumn(table: CsvTable, column: string): { place: number; values: Int32Array } {
  return { place: table.place(column), values: new Int32Array(table.linesMax) };
}

function sharedColumn(table: CsvTable, column: string) {
  const names = [''];
  const places = new Map([['', 0]]);
  return {
    place: table.place(column),
    names,
    of: new Int32Array(table.linesMax),
    placeOf(name: string): number {
      const known = places.get(name);
      if (known !== undefined) return known;
      places.set(name, names.length);
      return names.push(name) - 1;
    },
  };
}
