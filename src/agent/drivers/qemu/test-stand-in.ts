// Stands in for QEMU in tests: a process with QEMU's arguments that speaks QMP, passes the probe or does not, and then does under each accelerator
// what a test says: writes to its console, complains, enters a run state, hangs, or aborts. It runs no guest.

import { appendFileSync, readFileSync } from 'node:fs';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { system } from '../../../base/system.ts';

export interface StandInGuest {
  /** To its console, first of all. */
  readonly print?: string;
  /** To QEMU's standard error. */
  readonly complain?: string;
  /** A run state. Default `running`. */
  readonly enter?: string;
  /** It is entered once this many connections have ended: 1 is that of the agent that started it. Default 0: at once. */
  readonly afterConnections?: number;
  /** It answers nothing. */
  readonly hang?: true;
  /** Ends by itself, as an assertion that fails does. */
  readonly abort?: true;
}

export interface StandInPlan {
  /** Of a guest of the probe, under KVM. */
  readonly probe: 'passes' | 'fails' | 'hangs';
  /** Of one that is an image with a kernel. Default: as `probe`. */
  readonly kernelProbe?: 'passes' | 'fails' | 'hangs' | 'internal-error';
  readonly kvm: StandInGuest;
  readonly tcg: StandInGuest;
}

export interface StandIn {
  /** In place of QEMU. */
  readonly program: string;
  /** Of guests and probes that start from now on. */
  plan(next: StandInPlan): Promise<void>;
}

export const internalError: StandInGuest = {
  complain:
    'KVM internal error. Suberror: 1\nextra data[0]: 0x0000000000000001\nemulation failure\nEIP=00008ffc EFL=00000006\n',
  enter: 'internal-error',
};
export const boots: StandInGuest = { print: 'berth: ready\n' };

const planFile = 'plan.json';

export async function makeStandIn(directory: string, first: StandInPlan): Promise<StandIn> {
  await mkdir(directory, { recursive: true });
  const program = join(directory, 'qemu');
  const own = fileURLToPath(import.meta.url);
  // QEMU's own arguments, so that it is found by them in /proc.
  await writeFile(program, `#!/bin/sh\nexec '${system.nodePath()}' '${own}' '${directory}' "$@"\n`);
  await chmod(program, 0o755);
  const plan = (next: StandInPlan): Promise<void> => writeFile(join(directory, planFile), JSON.stringify(next));
  await plan(first);
  return { program, plan };
}

/** What the boot sector of the probe writes and ends QEMU with. */
const probed = { mark: 'berth: probe\n', exitCode: 99 };

function run(words: readonly string[], plan: StandInPlan): void {
  const after = (name: string): string | undefined => words[words.indexOf(name) + 1];
  if (words.includes('--version')) return void system.stdout.write('QEMU emulator version 7.2.22 (stand-in)\n');
  const kvm = after('-accel')?.startsWith('kvm') === true;
  if (after('-name') === 'guest=berth-probe') {
    const kernel = words.some((word) => word.includes('"driver":"qcow2"'));
    return probe(kvm ? (kernel && plan.kernelProbe) || plan.probe : 'passes', kernel);
  }
  const guest = kvm ? plan.kvm : plan.tcg;
  const consoleLog = words.map((word) => /^socket,id=console,.*logfile=([^,]+)/.exec(word)?.[1]).find(Boolean);
  if (guest.print !== undefined && consoleLog !== undefined) appendFileSync(consoleLog, guest.print);
  if (guest.complain !== undefined) system.stderr.write(guest.complain);
  if (guest.abort) return system.exit(134);
  if (guest.hang) return stay();
  const path = words.map((word) => /^socket,id=qmp,path=([^,]+)/.exec(word)?.[1]).find(Boolean);
  if (path !== undefined) listen(path, after('-uuid') ?? '', guest);
}

function probe(end: NonNullable<StandInPlan['kernelProbe']>, kernel: boolean): void {
  if (end === 'internal-error') system.stderr.write(internalError.complain ?? '');
  if (end === 'hangs' || end === 'internal-error') return stay();
  if (end === 'fails') return system.exit(134);
  system.stdout.write(kernel ? '\nWelcome to tiny.\n' : probed.mark);
  if (kernel) return stay();
  return system.exit(probed.exitCode);
}

function listen(path: string, uuid: string, { enter = 'running', afterConnections = 0 }: StandInGuest): void {
  let ended = 0;
  const status = (): string => (ended < afterConnections ? 'running' : enter);
  const send = (socket: Socket, message: object): void => void socket.write(`${JSON.stringify(message)}\n`);
  const answers: Readonly<Record<string, () => unknown>> = {
    qmp_capabilities: () => ({}),
    'query-uuid': () => ({ UUID: uuid }),
    'query-status': () => ({ status: status(), running: status() === 'running' }),
    'query-block': () => [],
    quit: () => ({}),
  };
  createServer((socket) => {
    let text = '';
    socket.on('error', () => {});
    socket.on('close', () => (ended += 1));
    send(socket, { QMP: { version: {}, capabilities: [] } });
    socket.on('data', (chunk: Buffer) => {
      text += chunk.toString();
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) {
        const { execute, id } = JSON.parse(line);
        const answer = answers[execute];
        if (answer === undefined) send(socket, { id, error: { class: 'CommandNotFound', desc: `no ${execute} here` } });
        else send(socket, { id, return: answer() });
        if (execute === 'quit') system.exit(0);
      }
    });
  }).listen(path);
}

function stay(): void {
  createServer().listen(0, '127.0.0.1'); // keeps the process
}

// Node 24 has `main`, its types do not.
if ((import.meta as { readonly main?: boolean }).main) {
  const [directory = '', ...words] = system.arguments();
  run(words, JSON.parse(readFileSync(join(directory, planFile), 'utf8')));
}
