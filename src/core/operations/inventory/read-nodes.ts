// Reads the list of nodes of another system. A bad node is skipped and named; a list that cannot be trusted is refused as a whole, for a
// partial list is worse than an error: hosts would seem to be gone.

import type { Amounts } from '../../../api/resources/metadata.ts';
import { isRecord } from '../../../base/is-record.ts';

/** A node that can be a host. */
export interface Node {
  readonly name: string;
  readonly capacity: Amounts;
  readonly usage: Amounts;
  readonly dedicated: boolean;
  readonly pool?: string;
  readonly model?: string;
  readonly ip?: string;
  /** How many guests its owner permits, and how many it has. */
  readonly guestsMax?: number;
  readonly guests?: number;
}

export type NodeList =
  | {
      readonly ok: true;
      readonly nodes: readonly Node[];
      /** Why each bad node is left out, by name. They are present: a host is not gone because its node is bad. */
      readonly skipped: ReadonlyMap<string, string>;
    }
  | { readonly ok: false; readonly why: string };

const nodesMax = 100_000;
const badShareMax = 0.01;

export function readNodes(json: unknown): NodeList {
  if (!Array.isArray(json)) return { ok: false, why: 'it is not a list' };
  if (json.length > nodesMax)
    return { ok: false, why: `it has ${json.length} nodes, and at most ${nodesMax} are read` };
  const names = new Set<string>();
  const nodes: Node[] = [];
  const skipped = new Map<string, string>();
  for (const [i, item] of json.entries()) {
    const name = nameIn(item);
    if (name !== undefined) {
      const folded = name.toLowerCase();
      if (names.has(folded)) return { ok: false, why: `two nodes are named ${quoted(name)}` };
      names.add(folded);
    }
    const node = readNode(item);
    if (typeof node === 'string') skipped.set(name === undefined ? `node ${i}` : name.slice(0, 80), node);
    else nodes.push(node);
  }
  if (skipped.size > json.length * badShareMax) {
    const [[name, why] = ['', '']] = skipped;
    return {
      ok: false,
      why: `${skipped.size} of its ${json.length} nodes are bad; the first is ${quoted(name)}: ${why}`,
    };
  }
  return { ok: true, nodes, skipped };
}

/** As JSON, so that no control character reaches a terminal. */
function quoted(name: string): string {
  return JSON.stringify(name.slice(0, 80));
}

function nameIn(item: unknown): string | undefined {
  const name = isRecord(item) ? item['name'] : undefined;
  return typeof name === 'string' ? name : undefined;
}

/** The node, or why it is bad. */
function readNode(item: unknown): Node | string {
  if (!isRecord(item)) return 'it is not an object';
  const fields = new Fields(item);
  const name = fields.text('name', nameForm) ?? fields.fault('name', 'is missing');
  const cpu = fields.amount('cpu', { min: 1, max: 8_192, whole: true }) ?? fields.fault('cpu', 'is missing');
  const memory = fields.amount('memory', { min: 1, max: 2 ** 32, whole: true }) ?? fields.fault('memory', 'is missing');
  const storage = fields.amount('storage', { min: 0, max: 2 ** 30, whole: true });
  const usageCpu = fields.amount('usage_cpu', { min: 0, max: Number(cpu) }) ?? 0;
  const usageMem = fields.amount('usage_mem', { min: 0, max: Number(memory) }) ?? 0;
  const vmsMax = fields.amount('max_vms', { min: 0, max: 1_000_000, whole: true });
  const vms = fields.amount('current_vms', { min: 0, max: 1_000_000, whole: true }) ?? 0;
  const pool = fields.text('pool', nameForm);
  const model = fields.text('model', /^[^\p{C}]{0,128}$/u);
  const ip = fields.text('ip', /^[0-9a-fA-F.:]{2,45}$/);
  const dedicated = fields.flag('dedicated');
  if (ip !== undefined && !isAddress(ip)) fields.fault('ip', 'is not an address');
  if (fields.firstFault !== undefined) return fields.firstFault;
  return {
    name: String(name),
    capacity: { VCPU: Number(cpu), MEMORY_MB: Number(memory), ...(storage === undefined ? {} : { DISK_GB: storage }) },
    usage: { VCPU: Math.ceil(usageCpu), MEMORY_MB: Math.ceil(usageMem) },
    dedicated,
    ...(pool === undefined ? {} : { pool }),
    ...(model === undefined ? {} : { model }),
    ...(ip === undefined ? {} : { ip }),
    ...(vmsMax === undefined ? {} : { guestsMax: vmsMax, guests: vms }),
  };
}

const nameForm = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;

interface Range {
  readonly min: number;
  readonly max: number;
  readonly whole?: true;
}

/** The fields of one node; remembers what is wrong with the first bad one. */
class Fields {
  firstFault: string | undefined;
  readonly #item: Readonly<Record<string, unknown>>;

  constructor(item: Readonly<Record<string, unknown>>) {
    this.#item = item;
  }

  fault(field: string, why: string): undefined {
    this.firstFault ??= `${field} ${why}`;
    return undefined;
  }

  amount(field: string, { min, max, whole }: Range): number | undefined {
    const value = this.#item[field] ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value !== 'number' || !Number.isFinite(value)) return this.fault(field, 'is not a number');
    if (value < min) return this.fault(field, `is ${value}, below ${min}`);
    if (value > max) return this.fault(field, `is ${value}, over ${max}`);
    if (whole && !Number.isInteger(value)) return this.fault(field, `is ${value}, not a whole number`);
    return value;
  }

  text(field: string, form: RegExp): string | undefined {
    const value = this.#item[field] ?? undefined;
    if (value === undefined) return undefined;
    if (typeof value !== 'string' || !form.test(value)) return this.fault(field, 'has another form');
    return value;
  }

  flag(field: string): boolean {
    const value = this.#item[field] ?? false;
    if (typeof value !== 'boolean') this.fault(field, 'is neither true nor false');
    return value === true;
  }
}

function isAddress(text: string): boolean {
  if (text.includes(':')) return URL.canParse(`http://[${text}]/`);
  const parts = text.split('.');
  return parts.length === 4 && parts.every((part) => /^(0|[1-9]\d{0,2})$/.test(part) && Number(part) <= 255);
}
