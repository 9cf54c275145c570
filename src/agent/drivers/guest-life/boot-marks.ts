// Finds on a guest's console the lines that say where its boot stands: pure. The guest writes them, so nothing here may
// be trusted beyond "this guest says so".

import { isIP, isIPv4 } from 'node:net';

export interface BootMarks {
  readonly ready: boolean;
  readonly address?: string;
}

export interface BootMarkScanner {
  /** Takes the next bytes of the console; cuts between them do not matter. True when `marks` changed. */
  push(bytes: Uint8Array): boolean;
  marks(): BootMarks;
}

/** Longer lines are cut: no mark is that long, and a guest may write one endless line. */
const lineLengthMax = 1024;

export function bootMarkScanner(known: BootMarks = { ready: false }): BootMarkScanner {
  let marks = known;
  let line = '';
  const decoder = new TextDecoder('latin1');
  return {
    marks: () => marks,
    push(bytes) {
      const before = marks;
      let rest = line + decoder.decode(bytes, { stream: true });
      // Most of what guests say is nothing for us, and some say very much.
      if (!markWords.test(rest)) {
        const end = rest.lastIndexOf('\n');
        line = rest.slice(end + 1, end + 1 + lineLengthMax);
        return false;
      }
      for (let end = rest.indexOf('\n'); end >= 0; end = rest.indexOf('\n')) {
        marks = readLine(rest.slice(0, Math.min(end, lineLengthMax)), marks);
        rest = rest.slice(end + 1);
      }
      line = rest.slice(0, lineLengthMax);
      return marks !== before;
    },
  };
}

/** One of them stands in every mark. */
const markWords = /berth: |ci-info: |Cloud-init v/;

function readLine(raw: string, marks: BootMarks): BootMarks {
  const text = raw.replace(escapeSequences, '').replace(/\r/g, '').trimEnd();
  const own = /(?:^|\s)berth: address (\S{1,15}) (\S{2,45})$/.exec(text);
  if (own?.[2] !== undefined && isIP(own[2]) !== 0) return withAddress(marks, own[2]);
  const cloudInit = /ci-info: \|\s*([\w.-]{1,15})\s*\|\s*True\s*\|\s*([0-9.]{7,15})\s*\|/.exec(text);
  if (cloudInit?.[2] !== undefined && cloudInit[1] !== 'lo' && isIPv4(cloudInit[2]))
    return withAddress(marks, cloudInit[2]);
  const ended = /(?:^|\s)berth: ready$/.test(text) || /Cloud-init v\. \S+ finished at /.test(text);
  return ended && !marks.ready ? { ...marks, ready: true } : marks;
}

function withAddress(marks: BootMarks, address: string): BootMarks {
  return marks.address === address ? marks : { ...marks, address };
}

const escapeSequences = /\x1b\[[0-9;?]*[A-Za-z]/g;
