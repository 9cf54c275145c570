// Decodes the log of a job: lines `TIME STREAM TAG TEXT` as in the CRI, which are stored as they came. TAG `P`: the line of
// the program goes on in the next line of its stream. The text is bytes, whatever their encoding.

export interface LogText {
  readonly stream: 'stdout' | 'stderr';
  readonly bytes: Uint8Array;
}

const newLine = 0x0a;
const header = /^(\d{4}-\d\d-\d\dT[0-9:.]{8,20}Z) (stdout|stderr) ([FP]) /;
const headerBytesMax = 64;

export class LogLines {
  readonly #timestamps: boolean;
  /** The beginning of a line whose end has not come. */
  #held: Buffer = Buffer.alloc(0);
  /** Streams in the middle of a line of the program. */
  readonly #open = new Set<LogText['stream']>();

  constructor({ timestamps }: { readonly timestamps: boolean }) {
    this.#timestamps = timestamps;
  }

  /** The texts of the lines that end in `bytes`, consecutive ones of a stream joined. */
  push(bytes: Uint8Array): LogText[] {
    const all = this.#held.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#held, bytes]);
    const texts: { stream: LogText['stream']; parts: Buffer[] }[] = [];
    let from = 0;
    for (let end = all.indexOf(newLine); end >= 0; end = all.indexOf(newLine, from)) {
      const line = all.subarray(from, end + 1);
      from = end + 1;
      const text = this.#textOf(line);
      if (!text) continue;
      const last = texts.at(-1);
      if (last?.stream === text.stream) last.parts.push(...text.parts);
      else texts.push(text);
    }
    this.#held = Buffer.from(all.subarray(from));
    return texts.map(({ stream, parts }) => ({ stream, bytes: Buffer.concat(parts) }));
  }

  /** Undefined for what is no line: the rest of one that was cut where the log reached its limit. */
  #textOf(line: Buffer): { stream: LogText['stream']; parts: Buffer[] } | undefined {
    const [head = '', time = '', stream, tag] = header.exec(line.toString('latin1', 0, headerBytesMax)) ?? [];
    if (stream !== 'stdout' && stream !== 'stderr') return undefined;
    const ends = tag === 'F';
    const begins = !this.#open.has(stream);
    if (ends) this.#open.delete(stream);
    else this.#open.add(stream);
    const text = line.subarray(head.length, ends ? line.length : -1);
    return { stream, parts: this.#timestamps && begins ? [Buffer.from(`${time} `), text] : [text] };
  }
}
