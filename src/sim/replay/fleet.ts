// A recorded list of hosts. Two forms are known, told apart by their header; what a form does not tell is undefined, never guessed.

import { checkColumns, readCsvTable } from './csv-table.ts';

export interface FleetHost {
  readonly name: string;
  readonly cpuMilli: number;
  /** Undefined where the list does not tell. */
  readonly memoryMiB: number | undefined;
  readonly gpus: number;
  /** '' for a host without GPUs. */
  readonly gpuModel: string;
}

interface FleetForm {
  readonly name: string;
  readonly cpu: string;
  readonly cpuMilliPerUnit: number;
  readonly memoryMiB: string | undefined;
  readonly gpus: string;
  readonly gpuModel: string;
}

/** alibaba/clusterdata: cluster-trace-gpu-v2023 (openb), and cluster-trace-v2026-spot-gpu (node_info_df). */
const forms: readonly FleetForm[] = [
  { name: 'sn', cpu: 'cpu_milli', cpuMilliPerUnit: 1, memoryMiB: 'memory_mib', gpus: 'gpu', gpuModel: 'model' },
  {
    name: 'node_name',
    cpu: 'cpu_num',
    cpuMilliPerUnit: 1000,
    memoryMiB: undefined,
    gpus: 'gpu_capacity_num',
    gpuModel: 'gpu_model',
  },
];

/** Reads a list of hosts, gzipped or not. Throws with file, line and column when it cannot; `source` is what messages call the file. */
export function readFleet(packed: Uint8Array, source: string): readonly FleetHost[] {
  const table = readCsvTable(packed, source);
  const form = forms.find(({ name }) => table.place(name) >= 0);
  if (!form)
    throw new Error(
      `cannot read ${source}, line 1: not a list of hosts; its header must be one of ${forms.map((known) => columnsOf(known).join(',')).join(' or ')}`,
    );
  checkColumns(table, { source, required: columnsOf(form), optional: [] });
  const place = {
    name: table.place(form.name),
    cpu: table.place(form.cpu),
    gpus: table.place(form.gpus),
    gpuModel: table.place(form.gpuModel),
  };
  const memory = form.memoryMiB === undefined ? undefined : table.place(form.memoryMiB);
  const seen = new Set<string>();
  const hosts: FleetHost[] = [];
  table.forEachLine((line) => {
    const name = line.text(place.name);
    if (seen.has(name)) line.fault(place.name, `a second host "${name}"; names must differ`);
    seen.add(name);
    hosts.push({
      name,
      cpuMilli: form.cpuMilliPerUnit * line.integer(place.cpu),
      memoryMiB: memory === undefined ? undefined : line.integer(memory),
      gpus: line.integer(place.gpus),
      gpuModel: line.text(place.gpuModel),
    });
  });
  return hosts;
}

function columnsOf(form: FleetForm): string[] {
  return [form.name, form.cpu, form.memoryMiB, form.gpus, form.gpuModel].filter((column) => column !== undefined);
}
