// The runner's protocol: what the guest and the agent say to each other over the runner's port. Pure. Whatever a guest sends is
// hostile: lengths, offsets and kinds are checked here, and a stream that went wrong is searched for the next welcome.
//
//   agent → guest   one command a line; a line without its final dot was torn, and is ignored
//   guest → agent   one header a line; after a `data` header come as many bytes as it says
//
//   agent   hello NONCE stdout stderr artifacts     what it has durably of each stream
//   guest   welcome NONCE BOOT PHASE                and then all that it keeps beyond these offsets, in order, and what is new
//   agent   put FILE new|more TEXT                  before `go`, to a guest that booted without a program: part of a file, octal escapes
//   agent   go                                      once; a guest that has begun ignores it
//   guest   data STREAM OFFSET LENGTH CHECK         kept in the guest until `ack STREAM OFFSET`
//   guest   exit CODE                               after all of stdout and stderr; then the artifacts
//   guest   done STATUS                             after all artifacts
//   agent   bye off | bye stay                      the guest powers off, or the runner ends and leaves it up
//
// A host that disconnects loses what is under way in the port, at any byte. So nothing counts before a welcome with a nonce of this
// connection: a program cannot know it.

import { posixChecksum } from './posix-checksum.ts';

export const runStreams = ['stdout', 'stderr', 'artifacts'] as const;
export type RunStream = (typeof runStreams)[number];
/** Bytes of each stream since its beginning. */
export type StreamOffsets = Readonly<Record<RunStream, number>>;

/** new: the program has not begun. over: it has ended, whatever is still under way. */
export const runnerPhases = ['new', 'running', 'over'] as const;
export type RunnerPhase = (typeof runnerPhases)[number];

export type GuestFrame =
  /** The runner is there; unasked, and not to be believed: only a reason to say hello. */
  | { readonly kind: 'begin'; readonly bootId: string }
  | { readonly kind: 'welcome'; readonly nonce: string; readonly bootId: string; readonly phase: RunnerPhase }
  | { readonly kind: 'data'; readonly stream: RunStream; readonly offset: number; readonly bytes: Uint8Array }
  | { readonly kind: 'exit'; readonly code: number }
  /** `status` of the archiver: 0 when all files were read. */
  | { readonly kind: 'done'; readonly status: number }
  | { readonly kind: 'pong'; readonly nonce: string };

export type AgentCommand =
  | { readonly kind: 'hello'; readonly nonce: string; readonly offsets: StreamOffsets }
  | { readonly kind: 'put'; readonly file: string; readonly how: 'new' | 'more'; readonly text: string }
  | { readonly kind: 'go' }
  | { readonly kind: 'ack'; readonly stream: RunStream; readonly offset: number }
  /** SIGTERM, SIGKILL to the program's group. */
  | { readonly kind: 'term' }
  | { readonly kind: 'kill' }
  | { readonly kind: 'ping'; readonly nonce: string }
  | { readonly kind: 'bye'; readonly power: 'off' | 'stay' };

/** Every line of either side begins so. */
export const magic = 'berth1';
export const dataBytesMax = 65_536;
const headerBytesMax = 200;
const commandBytesMax = 4_096;
const nonce = /^[0-9a-f]{8,64}$/;
const bootId = /^[0-9A-Za-z.-]{1,64}$/;
const newline = 0x0a;

export function encodeCommand(command: AgentCommand): Buffer {
  return Buffer.from(`${magic} ${wordsOf(command).join(' ')} .\n`, 'latin1');
}

function wordsOf(command: AgentCommand): readonly (string | number)[] {
  switch (command.kind) {
    case 'hello':
      return ['hello', command.nonce, ...runStreams.map((stream) => command.offsets[stream])];
    case 'ack':
      return ['ack', command.stream, command.offset];
    case 'ping':
      return ['ping', command.nonce];
    case 'bye':
      return ['bye', command.power];
    case 'put':
      return ['put', command.file, command.how, command.text];
    default:
      return [command.kind];
  }
}

/** As the guest's script writes it. `check`: with a checksum, as on a serial port. */
export function encodeFrame(frame: GuestFrame, { check = false }: { readonly check?: boolean } = {}): Buffer {
  if (frame.kind !== 'data') return Buffer.from(`\n${magic} ${headerOf(frame).join(' ')} .\n`, 'latin1');
  const { stream, offset, bytes } = frame;
  const words = ['data', stream, offset, bytes.length, check ? posixChecksum(bytes) : '-'];
  return Buffer.concat([Buffer.from(`${magic} ${words.join(' ')} .\n`, 'latin1'), bytes]);
}

function headerOf(frame: Exclude<GuestFrame, { kind: 'data' }>): readonly (string | number)[] {
  switch (frame.kind) {
    case 'begin':
      return ['begin', frame.bootId];
    case 'welcome':
      return ['welcome', frame.nonce, frame.bootId, frame.phase];
    case 'exit':
      return ['exit', frame.code];
    case 'done':
      return ['done', frame.status];
    case 'pong':
      return ['pong', frame.nonce];
  }
}

/** The guest's ear. What is no whole command is left out. */
export class CommandDecoder {
  #rest = '';

  push(bytes: Uint8Array): AgentCommand[] {
    const lines = (this.#rest + Buffer.from(bytes).toString('latin1')).split('\n');
    this.#rest = (lines.pop() ?? '').slice(-commandBytesMax);
    return lines.map(commandOf).filter((command) => command !== undefined);
  }
}

function commandOf(line: string): AgentCommand | undefined {
  const words = line.split(' ');
  if (words.shift() !== magic || words.pop() !== '.') return undefined;
  const [kind, first = '', ...more] = words;
  const [stdout, stderr, artifacts] = more.map(wholeNumber);
  switch (kind) {
    case 'hello':
      return stdout === undefined || stderr === undefined || artifacts === undefined || !nonce.test(first)
        ? undefined
        : { kind, nonce: first, offsets: { stdout, stderr, artifacts } };
    case 'ack': {
      const stream = streamNamed(first);
      return stream === undefined || stdout === undefined ? undefined : { kind, stream, offset: stdout };
    }
    case 'ping':
      return nonce.test(first) ? { kind, nonce: first } : undefined;
    case 'bye':
      return first === 'off' || first === 'stay' ? { kind, power: first } : undefined;
    case 'put': {
      const [how = '', text = ''] = more;
      return how === 'new' || how === 'more' ? { kind, file: first, how, text } : undefined;
    }
    case 'go':
    case 'term':
    case 'kill':
      return { kind };
    default:
      return undefined;
  }
}

/** `lost`: the guest's bytes make no sense any more. Say hello again, with a nonce to expect. */
export type Heard = GuestFrame | { readonly kind: 'lost'; readonly why: string };

/** Hellos that may be without an answer: a guest that boots hears some tens of them at once. */
const expectedMax = 64;

/** The agent's ear, of one connection. Begins by searching for a welcome with one of the expected nonces. */
export class FrameDecoder {
  readonly #expected = new Set<string>();
  #synced = false;
  #rest: Buffer = Buffer.alloc(0);

  /** A nonce that a hello of this connection carries. It counts once; of many that had no answer the oldest are forgotten. */
  expect(nonce: string): void {
    this.#expected.add(nonce);
    const [oldest = nonce] = this.#expected;
    if (this.#expected.size > expectedMax) this.#expected.delete(oldest);
  }

  /** Whether what comes is believed. */
  get synced(): boolean {
    return this.#synced;
  }

  push(bytes: Uint8Array): Heard[] {
    this.#rest = this.#rest.length === 0 ? Buffer.from(bytes) : Buffer.concat([this.#rest, bytes]);
    const heard: Heard[] = [];
    for (let next = this.#next(); next !== undefined; next = this.#next()) {
      heard.push(next);
      if (next.kind === 'lost') this.#synced = false;
    }
    return heard;
  }

  #next(): Heard | undefined {
    return this.#synced ? this.#frame() : this.#search();
  }

  /** The next welcome that counts, or a begin; whatever is before is dropped. */
  #search(): Heard | undefined {
    for (;;) {
      const at = this.#rest.indexOf(`${magic} `);
      if (at < 0) {
        this.#drop(Math.max(0, this.#rest.length - magic.length));
        return undefined;
      }
      this.#drop(at);
      const end = this.#rest.subarray(0, headerBytesMax).indexOf(newline);
      if (end < 0 && this.#rest.length < headerBytesMax) return undefined;
      const frame = end < 0 ? undefined : plainFrame(wordsIn(this.#rest.subarray(0, end)));
      const counts = frame?.kind === 'welcome' && this.#expected.has(frame.nonce);
      this.#drop(counts || frame?.kind === 'begin' ? end + 1 : magic.length);
      this.#synced = counts;
      if (counts) this.#expected.delete(frame.nonce);
      if (counts || frame?.kind === 'begin') return frame;
    }
  }

  #frame(): Heard | undefined {
    let begin = 0;
    while (this.#rest[begin] === newline) begin += 1;
    this.#drop(begin);
    if (this.#rest.length === 0) return undefined;
    const end = this.#rest.subarray(0, headerBytesMax).indexOf(newline);
    if (end < 0) return this.#rest.length < headerBytesMax ? undefined : lost('a header has no end');
    const words = wordsIn(this.#rest.subarray(0, end));
    if (words?.[0] === 'data') return this.#data(words, end + 1);
    const frame = plainFrame(words);
    if (frame === undefined) return lost('a header is none');
    if (frame.kind === 'welcome') this.#expected.delete(frame.nonce);
    this.#drop(end + 1);
    return frame;
  }

  #data(words: readonly string[], begin: number): Heard | undefined {
    const stream = streamNamed(words[1] ?? '');
    const offset = wholeNumber(words[2] ?? '');
    const length = wholeNumber(words[3] ?? '');
    if (words.length !== 5 || stream === undefined || offset === undefined || length === undefined)
      return lost('a header of data is none');
    if (length > dataBytesMax || !Number.isSafeInteger(offset + length))
      return lost(`${length} bytes at ${offset} are more than a frame may have`);
    if (this.#rest.length < begin + length) return undefined;
    const bytes = this.#rest.subarray(begin, begin + length);
    if (words[4] !== '-' && words[4] !== String(posixChecksum(bytes))) return lost('a checksum does not match');
    this.#drop(begin + length);
    return { kind: 'data', stream, offset, bytes };
  }

  #drop(count: number): void {
    this.#rest = this.#rest.subarray(count);
  }
}

function lost(why: string): Heard {
  return { kind: 'lost', why };
}

/** Between magic and final dot. */
function wordsIn(line: Buffer): readonly string[] | undefined {
  const words = line.toString('latin1').split(' ');
  return words.shift() === magic && words.pop() === '.' ? words : undefined;
}

function plainFrame(words: readonly string[] | undefined): Exclude<GuestFrame, { kind: 'data' }> | undefined {
  const [kind, first = '', second = '', third = ''] = words ?? [];
  const count = words?.length;
  if (kind === 'begin' && count === 2 && bootId.test(first)) return { kind, bootId: first };
  if (kind === 'pong' && count === 2 && nonce.test(first)) return { kind, nonce: first };
  const code = wholeNumber(first);
  if (kind === 'exit' && count === 2 && code !== undefined && code <= 255) return { kind, code };
  if (kind === 'done' && count === 2 && code !== undefined && code <= 255) return { kind, status: code };
  const phase = runnerPhases.find((each) => each === third);
  if (kind === 'welcome' && count === 4 && nonce.test(first) && bootId.test(second) && phase !== undefined)
    return { kind, nonce: first, bootId: second, phase };
  return undefined;
}

function streamNamed(name: string): RunStream | undefined {
  return runStreams.find((each) => each === name);
}

function wholeNumber(text: string): number | undefined {
  const value = /^\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}
