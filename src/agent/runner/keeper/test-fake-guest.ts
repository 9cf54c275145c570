// A guest that speaks the runner's side of the protocol in this process, and a control plane that keeps what it is sent. Used by tests only.

import { type Duplex, duplexPair } from 'node:stream';
import type { RunSpec } from '../../../api/resources/run.ts';
import { ApiError } from '../../../api/errors.ts';
import { createManualClock, type ManualClock } from '../../../base/manual-clock.ts';
import { silentLogger } from '../../../base/log.ts';
import { seededPrng } from '../../../base/prng.ts';
import { system } from '../../../base/system.ts';
import type { Driver, Guest } from '../../drivers/driver.ts';
import { createMemoryRunFiles, type RunMemory } from '../files/memory-run-files.ts';
import type { RunFiles, RunPart } from '../files/run-files.ts';
import { CommandDecoder, encodeFrame, type GuestFrame, type RunnerPhase, type RunStream } from '../protocol.ts';
import { Runs } from '../runs.ts';
import type { RunPiece } from '../../../api/client/client.ts';

export interface FakeProgram {
  readonly output: readonly (readonly [RunStream, string])[];
  readonly exitCode?: number;
  /** Does not end by itself; SIGTERM: ends it with 143, or does not. */
  readonly endless?: 'heeds' | 'ignores';
}

const segmentsMax = 4;
type Data = Extract<GuestFrame, { kind: 'data' }>;

export class FakeRunner {
  readonly #program: FakeProgram;
  readonly #bootId: string;
  readonly #next: (readonly [RunStream, string])[];
  readonly #sizes = { stdout: 0, stderr: 0, artifacts: 0 };
  #spool: Data[] = [];
  #phase: RunnerPhase = 'new';
  #code: number | undefined;
  #done = false;
  #end: Duplex | undefined;
  begun = 0;
  readonly heard: string[] = [];
  /** As they came, with escapes. */
  readonly files: Record<string, string> = {};
  onBye: (power: 'off' | 'stay') => void = () => {};

  constructor(program: FakeProgram, bootId = 'boot-1') {
    this.#program = program;
    this.#bootId = bootId;
    this.#next = [...program.output];
  }

  /** The agent's end. An earlier connection is over, with what was under way in it. */
  connect(): Duplex {
    this.disconnect();
    const [guest, agent] = duplexPair();
    this.#end = guest;
    const decoder = new CommandDecoder();
    guest.on('error', () => {});
    guest.on('close', () => {
      if (this.#end === guest) this.#end = undefined;
    });
    guest.on('data', (bytes: Buffer) => {
      for (const command of decoder.push(bytes)) this.#obey(command);
    });
    this.#write({ kind: 'begin', bootId: this.#bootId });
    return agent;
  }

  disconnect(): void {
    this.#end?.destroy();
    this.#end = undefined;
  }

  /** Bytes that no runner would write. */
  writeRaw(text: string): void {
    this.#end?.write(text);
  }

  #obey(command: ReturnType<CommandDecoder['push']>[number]): void {
    this.heard.push(command.kind);
    switch (command.kind) {
      case 'hello':
        for (const stream of ['stdout', 'stderr', 'artifacts'] as const) this.#forget(stream, command.offsets[stream]);
        this.#write({ kind: 'welcome', nonce: command.nonce, bootId: this.#bootId, phase: this.#phase });
        for (const data of this.#spool) if (data.stream !== 'artifacts') this.#write(data);
        if (this.#code !== undefined) this.#write({ kind: 'exit', code: this.#code });
        for (const data of this.#spool) if (data.stream === 'artifacts') this.#write(data);
        if (this.#done) this.#write({ kind: 'done', status: 0 });
        break;
      case 'go':
        if (this.#phase === 'new') this.begun += 1;
        if (this.#phase === 'new') this.#phase = 'running';
        break;
      case 'put':
        this.files[command.file] = (command.how === 'new' ? '' : (this.files[command.file] ?? '')) + command.text;
        break;
      case 'ack':
        this.#forget(command.stream, command.offset);
        break;
      case 'term':
        if (this.#program.endless === 'heeds') this.#exit(143);
        break;
      case 'kill':
        this.#exit(137);
        break;
      case 'ping':
        this.#write({ kind: 'pong', nonce: command.nonce });
        break;
      case 'bye':
        this.onBye(command.power);
    }
    this.#run();
  }

  #run(): void {
    if (this.#phase === 'new') return;
    for (let next = this.#next[0]; next !== undefined && this.#spool.length < segmentsMax; next = this.#next[0]) {
      const [stream, text] = next;
      if (stream === 'artifacts' && this.#code === undefined) break;
      this.#next.shift();
      const bytes = Buffer.from(text);
      const data: Data = { kind: 'data', stream, offset: this.#sizes[stream], bytes };
      this.#sizes[stream] += bytes.length;
      this.#spool.push(data);
      this.#write(data);
    }
    const printed = this.#next.every(([stream]) => stream === 'artifacts');
    if (printed && this.#code === undefined && this.#program.endless === undefined) {
      this.#exit(this.#program.exitCode ?? 0);
      return this.#run();
    }
    if (this.#code !== undefined && this.#next.length === 0 && !this.#done) {
      this.#done = true;
      this.#write({ kind: 'done', status: 0 });
    }
  }

  #exit(code: number): void {
    if (this.#code !== undefined) return;
    this.#code = code;
    this.#phase = 'over';
    this.#write({ kind: 'exit', code });
  }

  #forget(stream: RunStream, offset: number): void {
    this.#spool = this.#spool.filter((data) => data.stream !== stream || data.offset + data.bytes.length > offset);
  }

  #write(frame: GuestFrame): void {
    this.#end?.write(encodeFrame(frame));
  }
}

export const instanceId = 'inst_0123456789abcdefghijklmnop';

const emptySpec: RunSpec = {
  script: 'true',
  env: {},
  artifacts: [],
  timeLimitMs: 3_600_000,
  graceMs: 10_000,
  holdOnFailure: false,
};

/** A host with one guest: what it has on its disk, and what the control plane has, survive its agents. */
export class RunWorld {
  readonly clock: ManualClock = createManualClock();
  readonly memory: RunMemory = new Map();
  readonly sent: Record<RunPart, string> = { log: '', artifacts: '' };
  assigned: { instanceId: string; incarnation: number; run: RunSpec; secrets?: Record<string, Record<string, string>> };
  runner: FakeRunner;
  runs: Runs | undefined;
  guest: Guest | undefined;
  /** Instead of taking a piece. */
  refuse: ((piece: RunPiece) => ApiError | undefined) | undefined;

  constructor(program: FakeProgram, spec: Partial<RunSpec> = {}) {
    this.runner = new FakeRunner(program);
    this.assigned = { instanceId, incarnation: 1, run: { ...emptySpec, ...spec } };
  }

  readonly driver = {
    name: 'fake',
    access: { openRunner: () => Promise.resolve(this.runner.connect()) },
  } as unknown as Driver; // of a driver, runs use no more

  /** `wrap`: between the agent and its files. */
  async begin(
    limits: { readonly logBytesMax?: number } = {},
    wrap = (files: RunFiles): RunFiles => files,
  ): Promise<void> {
    const prng = seededPrng(1, 'runs');
    this.runs = new Runs({
      parts: {
        files: wrap(createMemoryRunFiles(this.memory)),
        randomSecret: (length) => Buffer.from(Array.from({ length }, () => prng.below(256))),
        ...limits,
      },
      send: (piece) => this.#take(piece),
      onChange: () => {},
      clock: this.clock,
      prng,
      log: silentLogger,
    });
    await this.runs.open();
  }

  /** The guest is created, if it is not yet, and runs. */
  async start(): Promise<void> {
    if (this.memory.get(instanceId)?.has('disk') !== true)
      await this.runs?.prepare(this.assigned, this.driver, new AbortController().signal);
    this.setGuest('running');
  }

  setGuest(state: Guest['state'], reason?: Guest['reason']): void {
    this.guest = {
      instanceId,
      incarnation: 1,
      state,
      ready: true,
      ports: [],
      phases: [],
      ...(reason ? { reason } : {}),
    };
    if (state !== 'running') this.runner.disconnect();
    this.runs?.look(this.assigned, this.guest, this.driver);
  }

  get status() {
    return this.runs?.statusOf(this.assigned);
  }

  /** Lets time pass until it is so; throws when it never is. */
  async until(met: () => boolean, stepMs = 20): Promise<void> {
    for (let i = 0; i < 3000; i++) {
      for (let turn = 0; turn < 4; turn++) await system.turn();
      if (met()) return;
      await this.clock.advanceSettled(stepMs, system.turn);
    }
    throw new Error(`it never came to that: ${JSON.stringify(this.status)}, ${this.runner.heard.join(' ')}`);
  }

  async ended(stepMs?: number): Promise<void> {
    await this.until(() => this.status?.state === 'ended', stepMs);
  }

  /** Text of the log's lines by stream; a part is joined with what follows. */
  texts(): { stdout: string; stderr: string } {
    const texts = { stdout: '', stderr: '' };
    for (const line of this.sent.log.split('\n').slice(0, -1)) {
      const [, stream, tag, text] = /^\S+Z (stdout|stderr) ([FP]) (.*)$/s.exec(line) ?? [];
      if (stream !== 'stdout' && stream !== 'stderr') throw new Error(`not a line of a log: ${line}`);
      texts[stream] += `${text}${tag === 'F' ? '\n' : ''}`;
    }
    return texts;
  }

  #take(piece: RunPiece): Promise<number> {
    const refusal = this.refuse?.(piece);
    if (refusal !== undefined) return Promise.reject(refusal);
    const { part, offset, bytes } = piece;
    const known = this.sent[part];
    if (offset > known.length) {
      const gap = new ApiError('Conflict', 'a gap', { details: { size: known.length } });
      return Promise.reject(gap);
    }
    this.sent[part] += Buffer.from(bytes)
      .toString('latin1')
      .slice(known.length - offset);
    return Promise.resolve(this.sent[part].length);
  }
}
