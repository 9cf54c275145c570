// The files of an audit log: their names, and what is at the end of the last one.

import { closeSync, fstatSync, openSync, readdirSync, readSync } from 'node:fs';
import { join } from 'node:path';
import { isRecord } from '../../base/is-record.ts';
import { lineHash } from './audit-entry.ts';

/** `audit-000000000001.jsonl`: the number is the `seq` of its first line. */
const pattern = /^audit-(\d{12})\.jsonl$/;

export interface AuditFileName {
  readonly name: string;
  readonly path: string;
  readonly firstSeq: number;
}

export function fileNameOf(firstSeq: number): string {
  return `audit-${String(firstSeq).padStart(12, '0')}.jsonl`;
}

/** Oldest first. */
export function auditFiles(directory: string): AuditFileName[] {
  return readdirSync(directory)
    .filter((name) => pattern.test(name))
    .sort()
    .map((name) => ({ name, path: join(directory, name), firstSeq: Number(pattern.exec(name)?.[1]) }));
}

export interface FileEnd {
  /** Of the last line that can be read; 0: there is none. */
  readonly seq: number;
  readonly hash: string;
  /** The length of the file up to the end of its last whole line. */
  readonly bytes: number;
  /** Bytes of a line that was not written to its end. */
  readonly tornBytes: number;
  /** The last whole line is not a line of an audit log. */
  readonly damaged: boolean;
}

/** More than any line: names are cut. */
const tailBytesMax = 256 * 1024;

/** Reads the end of a file. One torn last line is what a crash leaves. */
export function endOfFile(path: string): FileEnd {
  const fd = openSync(path, 'r');
  try {
    const { size } = fstatSync(fd);
    const from = Math.max(0, size - tailBytesMax);
    const tail = Buffer.alloc(size - from);
    readSync(fd, tail, 0, tail.length, from);
    const bytes = from + tail.lastIndexOf('\n'.charCodeAt(0)) + 1;
    const lines = tail
      .subarray(0, bytes - from)
      .toString()
      .split('\n')
      .slice(0, -1);
    for (const [i, line] of lines.toReversed().entries()) {
      const seq = seqOf(line);
      if (seq !== undefined) return { seq, hash: lineHash(line), bytes, tornBytes: size - bytes, damaged: i > 0 };
    }
    return { seq: 0, hash: '', bytes, tornBytes: size - bytes, damaged: lines.length > 0 };
  } finally {
    closeSync(fd);
  }
}

function seqOf(line: string): number | undefined {
  const seq = parseLine(line)?.['seq'];
  return typeof seq === 'number' ? seq : undefined;
}

/** The fields of a line, or undefined when it is none. */
export function parseLine(line: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(line);
    return isRecord(value) ? value : undefined;
  } catch {
    return undefined; // torn or edited: the caller says so
  }
}
