// The runner inside a fake guest: it runs the program of the run disk on the guest's time, and speaks the guest's side of the runner's protocol.
// As a real one, it keeps what was not acknowledged over disconnects, and loses everything when the guest is started again.

import {
  type AgentCommand,
  CommandDecoder,
  encodeFrame,
  type GuestFrame,
  type RunnerPhase,
  type RunStream,
  runStreams,
} from '../../runner/protocol.ts';
import { OutputSpool } from './output-spool.ts';
import type { ProgramStep } from './program.ts';

/** The host's end of the port, while it is open. */
export interface PortHost {
  /** Who opened it: a driver has it open once at most, and a new driver takes it over from a dead one. */
  readonly owner: object;
  deliver(bytes: Uint8Array): void;
  /** The guest has ended. */
  close(): void;
}

/** A program that wrote so much without an acknowledgement waits. */
const spoolBytesMax = 1024 * 1024;
/** From a command's arrival until the runner has it. */
const hearMs = 1;

export class GuestRunner {
  readonly failsToBoot: boolean;
  readonly #after: (delayMs: number, act: () => void) => void;
  readonly #bootId: () => string;
  readonly #steps: readonly ProgramStep[] | undefined;
  readonly #powerOff: () => void;
  #host: PortHost | undefined;
  #life = noLife();

  constructor(parts: {
    /** Of the guest's running time. */
    readonly after: (delayMs: number, act: () => void) => void;
    /** Another one for each start of the guest. */
    readonly bootId: () => string;
    /** Undefined: the disk has no program. */
    readonly steps: readonly ProgramStep[] | undefined;
    readonly powerOff: () => void;
  }) {
    this.#after = parts.after;
    this.#bootId = parts.bootId;
    this.#steps = parts.steps;
    this.#powerOff = parts.powerOff;
    this.failsToBoot = parts.steps?.some((step) => step.do === 'fail-boot') === true;
  }

  get host(): PortHost | undefined {
    return this.#host;
  }

  /** The guest has booted. */
  begin(): void {
    this.#life = { ...noLife(), inbox: this.#life.inbox, bootId: this.#bootId() };
    this.#greet();
    this.#hearSoon();
  }

  /** The guest has ended. */
  end(): void {
    this.#life = noLife();
    const host = this.#host;
    this.#host = undefined;
    host?.close();
  }

  connect(host: PortHost): void {
    this.disconnect(this.#host);
    this.#host = host;
    this.#greet();
  }

  /** What the guest has not read yet is lost. */
  disconnect(host: PortHost | undefined): void {
    if (host === undefined || this.#host !== host) return;
    this.#host = undefined;
    this.#life.inbox.length = 0;
  }

  /** Bytes from the host; of one that was replaced, they are lost. */
  hear(host: PortHost, bytes: Uint8Array): void {
    if (this.#host !== host) return;
    this.#life.inbox.push(Uint8Array.from(bytes));
    this.#hearSoon();
  }

  #greet(): void {
    const { bootId, phase } = this.#life;
    if (bootId !== undefined && phase === 'new') this.#say({ kind: 'begin', bootId });
  }

  #hearSoon(): void {
    const life = this.#life;
    if (life.bootId === undefined || life.hearing || life.inbox.length === 0) return;
    life.hearing = true;
    this.#after(hearMs, () => {
      life.hearing = false;
      for (const bytes of life.inbox.splice(0))
        for (const command of life.ear.push(bytes)) if (this.#life === life) this.#obey(command);
    });
  }

  #obey(command: AgentCommand): void {
    const life = this.#life;
    switch (command.kind) {
      case 'hello':
        return this.#welcome(command);
      case 'put': // it plays a part of its own, whatever the files say
        return;
      case 'go':
        if (life.phase !== 'new') return;
        life.phase = 'running';
        return this.#goOn();
      case 'ack':
        life.spools[command.stream].acknowledge(command.offset);
        if (life.waitsForRoom) this.#goOn();
        return;
      case 'term':
        if (life.phase === 'running' && !life.hangs) this.#exit(128 + 15);
        return;
      case 'kill':
        if (life.phase === 'running') this.#exit(128 + 9);
        return;
      case 'ping':
        return this.#say({ kind: 'pong', nonce: command.nonce });
      case 'bye':
        this.#life = noLife();
        if (command.power === 'off') this.#powerOff();
        return;
    }
  }

  #welcome({ nonce, offsets }: Extract<AgentCommand, { kind: 'hello' }>): void {
    const { bootId, phase, spools, code } = this.#life;
    if (bootId === undefined) return;
    for (const stream of runStreams) spools[stream].acknowledge(offsets[stream]);
    this.#say({ kind: 'welcome', nonce, bootId, phase });
    for (const stream of runStreams)
      for (const piece of spools[stream].pieces()) this.#say({ kind: 'data', stream, ...piece });
    if (code !== undefined) this.#sayEnd(code);
    if (this.#life.waitsForRoom) this.#goOn();
  }

  /** Steps of the program, up to one that takes time. */
  #goOn(): void {
    const life = this.#life;
    life.waitsForRoom = false;
    while (life.phase === 'running') {
      if (life.spools.stdout.keptBytes + life.spools.stderr.keptBytes >= spoolBytesMax) {
        life.waitsForRoom = true;
        return;
      }
      const step = this.#next();
      switch (step.do) {
        case 'write':
          this.#write(step.stream, step.text);
          life.status = step.status;
          break;
        case 'status':
          life.status = step.code;
          break;
        case 'sleep':
          life.status = 0;
          this.#after(step.durationMs, () => {
            if (this.#life === life) this.#goOn();
          });
          return;
        case 'exit':
          return this.#exit(step.code ?? life.status);
        case 'hang':
        case 'fail-boot':
          life.hangs = true;
          return;
      }
    }
  }

  #next(): ProgramStep {
    const life = this.#life;
    if (this.#steps === undefined) {
      this.#write('stderr', 'berth: the work directory has no such file\n');
      return { do: 'exit', code: 127 };
    }
    return this.#steps[life.at++] ?? { do: 'exit', code: undefined };
  }

  #write(stream: RunStream, text: string): void {
    const bytes = Buffer.from(text);
    const offset = this.#life.spools[stream].add(bytes);
    this.#say({ kind: 'data', stream, offset, bytes });
  }

  #exit(code: number): void {
    this.#life.phase = 'over';
    this.#life.code = code;
    this.#sayEnd(code);
  }

  /** No program of a fake guest has artifacts. */
  #sayEnd(code: number): void {
    this.#say({ kind: 'exit', code });
    this.#say({ kind: 'done', status: 0 });
  }

  /** Lost while no host is connected. */
  #say(frame: GuestFrame): void {
    this.#host?.deliver(encodeFrame(frame));
  }
}

/** From one start of the guest to its end. */
interface Life {
  /** Undefined: the runner does not run. */
  readonly bootId: string | undefined;
  readonly inbox: Uint8Array[];
  readonly ear: CommandDecoder;
  readonly spools: Readonly<Record<RunStream, OutputSpool>>;
  hearing: boolean;
  phase: RunnerPhase;
  /** The next step. */
  at: number;
  /** Of the last step that has one. */
  status: number;
  hangs: boolean;
  waitsForRoom: boolean;
  code: number | undefined;
}

function noLife(): Life {
  return {
    bootId: undefined,
    inbox: [],
    ear: new CommandDecoder(),
    spools: { stdout: new OutputSpool(), stderr: new OutputSpool(), artifacts: new OutputSpool() },
    hearing: false,
    phase: 'new',
    at: 0,
    status: 0,
    hangs: false,
    waitsForRoom: false,
    code: undefined,
  };
}
