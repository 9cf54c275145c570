// Compares the files of an audit log with their own chain, and with the newest line that others know of: a chain alone shows edits, but
// not that its end was cut off.

import type { AuditFault } from '../../api/audit/audit-log.ts';
import type { AuditHead } from './audit-chain.ts';
import { lineHash, noHash } from './audit-entry.ts';
import { readLines } from './read-lines.ts';

export interface LogCheck {
  readonly files: number;
  readonly lines: number;
  readonly firstSeq: number;
  readonly lastSeq: number;
  readonly faults: readonly AuditFault[];
}

const faultsMax = 100;

/** `heads`: lines that must be there, as the store and this process know them. */
export async function verifyLog(directory: string, heads: readonly AuditHead[]): Promise<LogCheck> {
  const check = new Check(heads);
  for await (const { file, text, fields, torn } of readLines(directory)) {
    const seq = fields?.['seq'];
    if (torn) check.torn(file);
    else if (typeof seq !== 'number') check.damaged(file);
    else check.line({ file, text, seq, fields: fields ?? {} });
  }
  return check.end();
}

class Check {
  readonly #heads: readonly AuditHead[];
  readonly #wanted: Map<number, AuditHead[]>;
  readonly #faults: AuditFault[] = [];
  readonly #files = new Set<string>();
  readonly #expired = new Map<string, unknown>();
  /** What the first line of all follows. */
  #before: { readonly file: unknown; readonly prev: unknown } | undefined;
  #lines = 0;
  #firstSeq = 0;
  #last: AuditHead = { seq: 0, hash: noHash };
  #tornFile: string | undefined;

  constructor(heads: readonly AuditHead[]) {
    this.#heads = heads.filter(({ seq }) => seq > 0);
    this.#wanted = Map.groupBy(this.#heads, ({ seq }) => seq);
  }

  line(at: { file: string; text: string; seq: number; fields: Readonly<Record<string, unknown>> }): void {
    const { file, text, seq, fields } = at;
    // A torn line is what a crash leaves: it stays in a file only when nothing was written there again.
    if (this.#tornFile !== undefined) this.#fault('Damaged', { file: this.#tornFile, message: 'a line has no end' });
    this.#tornFile = undefined;
    const { seq: lastSeq, hash: lastHash } = this.#last;
    const { verb, kind, object, head, prev, reason } = fields;
    const isFirst = this.#lines === 0;
    if (isFirst) {
      this.#firstSeq = seq;
      this.#before = { file: object, prev };
    } else if (seq !== lastSeq + 1) {
      const message = `after line ${lastSeq} comes line ${seq}`;
      this.#fault('LineMissing', { file, seq, message });
    } else if (prev !== lastHash) {
      const message = `line ${lastSeq} is not what line ${seq} was written after: one of them was changed`;
      this.#fault('Edited', { file, seq: lastSeq, message });
    }
    if (kind === 'audit' && verb === 'expire' && typeof object === 'string') this.#expired.set(object, head);
    if (kind === 'audit' && verb === 'begin' && typeof reason === 'string') this.#beganAgain(file, seq, reason);
    const hash = lineHash(text);
    for (const wanted of this.#wanted.get(seq) ?? [])
      if (wanted.hash !== hash)
        this.#fault('Edited', { file, seq, message: `line ${seq} is not the one that the server has written` });
    this.#files.add(file);
    this.#lines += 1;
    this.#last = { seq, hash };
  }

  torn(file: string): void {
    this.#files.add(file);
    this.#tornFile = file;
  }

  damaged(file: string): void {
    this.#files.add(file);
    this.#fault('Damaged', { file, message: `what follows line ${this.#last.seq} is not a line of an audit log` });
  }

  end(): LogCheck {
    if (this.#firstSeq > 1) this.#beginning();
    const missing = this.#heads.filter(({ seq }) => seq > this.#last.seq);
    const newest = Math.max(0, ...missing.map(({ seq }) => seq));
    if (newest > 0)
      this.#fault('TailCut', {
        seq: this.#last.seq,
        message: `the log ends with line ${this.#last.seq}, and line ${newest} was written`,
      });
    const { seq: lastSeq } = this.#last;
    const faults = this.#faults.slice(0, faultsMax);
    return { files: this.#files.size, lines: this.#lines, firstSeq: this.#firstSeq, lastSeq, faults };
  }

  /** The first file follows one that is not there: retention has said so. */
  #beginning(): void {
    const { file, prev } = this.#before ?? {};
    if (typeof file === 'string' && this.#expired.get(file) === prev) return;
    const message = `the log begins with line ${this.#firstSeq}, and no line says that the ones before were too old`;
    this.#fault('FileMissing', { seq: this.#firstSeq, message });
  }

  #beganAgain(file: string, seq: number, reason: string): void {
    const code = reason === 'TailCut' || reason === 'FileMissing' || reason === 'Replaced' ? reason : 'Damaged';
    const message = `the server found its log changed when it wrote line ${seq}: ${reason}`;
    this.#fault(code, { file, seq, message });
  }

  #fault(code: AuditFault['code'], rest: Omit<AuditFault, 'code'>): void {
    this.#faults.push({ code, ...rest });
  }
}
