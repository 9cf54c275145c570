// An agent's life inside of a test, which ends where the test says: right before or right after any one of its steps. A step is whatever the
// agent does to the world outside of it: a change of a file, a program run, a signal, a call of an engine that changes something. They are found,
// not listed: the functions of Node that do such things count what is called within a life. What is dead does nothing any more and lets go of all
// that a process lets go of when it is killed; whatever it started goes on. Used by tests only.

import { AsyncLocalStorage } from 'node:async_hooks';
import childProcess, { ChildProcess } from 'node:child_process';
import type { EventEmitter } from 'node:events';
import fs, { constants } from 'node:fs';
import files, { type FileHandle } from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import net from 'node:net';
import { basename } from 'node:path';
import type { Clock } from '../base/clock.ts';
import { systemClock } from '../base/system.ts';

export interface Death {
  /** Counted from 0. */
  readonly step: number;
  readonly when: 'before' | 'after';
}

export interface Life {
  /** Stands still when the life is over. */
  readonly clock: Clock;
  /** Done so far, or died at, by name. */
  readonly steps: readonly string[];
  /** Resolves when it is over and what the kernel was doing for it is done. */
  readonly over: Promise<void>;
  /** What `act` does, and all that follows from it, belongs to this life. Resolves with false when it died of it. */
  live(act: () => Promise<unknown>): Promise<boolean>;
  /** Ends it here. */
  kill(): Promise<void>;
}

/** What an agent and an engine say to one another. */
export interface EngineTalk {
  /** The change that this asks for, by name; undefined: it asks for none. */
  changeAskedBy(said: Buffer): string | undefined;
  /** Whether it is the answer to what was asked, and no news. */
  isAnswer(said: Buffer): boolean;
}

interface Living extends Life {
  readonly dead: boolean;
  /** The name of a step is noted, and true answered when the life ends before it is done. */
  begin(name: string): { readonly goesOn: boolean; end(): boolean };
  readonly talks: readonly EngineTalk[];
  /** Let go of at the end. */
  hold(letGo: () => void): () => void;
  track<Result>(work: Promise<Result>): Promise<Result>;
}

const lives = new AsyncLocalStorage<Living>();
const never = <Result>(): Promise<Result> => new Promise(() => {});

export function beginLife({ death, talks = [] }: { death?: Death; talks?: readonly EngineTalk[] } = {}): Life {
  install();
  const steps: string[] = [];
  const held = new Set<() => void>();
  const working = new Set<Promise<unknown>>();
  const over = Promise.withResolvers<void>();
  let dead = false;

  const die = (): void => {
    if (dead) return;
    dead = true;
    lives.exit(() => {
      for (const letGo of held) letGo();
    });
    void Promise.allSettled(working).then(() => over.resolve());
  };
  const life: Living = {
    clock: {
      nowMs: systemClock.nowMs,
      monotonicMs: systemClock.monotonicMs,
      setTimer(delayMs, fire, options) {
        if (dead) return { cancel() {} };
        const timer = systemClock.setTimer(
          delayMs,
          () => {
            forget();
            fire();
          },
          options,
        );
        const forget = life.hold(() => timer.cancel());
        return {
          cancel() {
            forget();
            timer.cancel();
          },
        };
      },
    },
    steps,
    over: over.promise,
    talks,
    get dead() {
      return dead;
    },
    begin(name) {
      const step = steps.length;
      if (!dead) steps.push(name);
      if (death?.step === step && death.when === 'before') die();
      return {
        goesOn: !dead,
        end() {
          if (death?.step === step && death.when === 'after') die();
          return dead;
        },
      };
    },
    hold(letGo) {
      if (dead) letGo();
      else held.add(letGo);
      return () => held.delete(letGo);
    },
    track(work) {
      const noted = work
        .catch(() => {}) // reported to the caller
        .finally(() => working.delete(noted));
      working.add(noted);
      return work;
    },
    async live(act) {
      const acting = lives.run(life, act).then(() => true);
      const ended = over.promise.then(() => false);
      try {
        return await Promise.race([acting, ended]);
      } catch (error) {
        if (!dead) throw error;
        await over.promise;
        return false; // no caller is left
      }
    },
    kill() {
      die();
      return over.promise;
    },
  };
  return life;
}

type Anything = (...given: never[]) => unknown;
type Functions = Record<string, Anything>;

let installed = false;

/** Outside of a life all is as it was. */
function install(): void {
  if (installed) return;
  installed = true;
  watchFiles();
  watchPrograms();
  watchSockets();
  syncBuiltinESMExports();
}

/** What `act` does is a step of this life; an end before or after it is not reported. */
async function asStep<Result>(life: Living, name: string, act: () => Promise<Result>): Promise<Result> {
  const step = life.begin(name);
  if (!step.goesOn) return never();
  try {
    return await life.track(act());
  } finally {
    if (step.end()) await never();
  }
}

async function asLook<Result>(life: Living, act: () => Promise<Result>): Promise<Result> {
  if (life.dead) return never();
  try {
    return await act();
  } finally {
    if (life.dead) await never();
  }
}

/** Of `w`, `a` and `r` those that make or cut a file. */
const flagsOf = (word: string): number =>
  word.startsWith('w') ? constants.O_CREAT | constants.O_TRUNC : word.startsWith('a') ? constants.O_CREAT : 0;
const nameOf = (path: unknown): string => basename(String(path));

function watchFiles(): void {
  const functions = files as unknown as Functions;
  const before = { ...functions };
  const call = <Result>(name: string, given: readonly unknown[]): Promise<Result> =>
    (before[name] as (...all: unknown[]) => Promise<Result>)(...given);
  const isThere = (path: unknown): Promise<boolean> =>
    call('lstat', [path]).then(
      () => true,
      () => false,
    );
  /** What changes nothing is no step. */
  const changes: Readonly<Record<string, (given: readonly unknown[]) => Promise<boolean>>> = {
    appendFile: async () => true,
    chmod: async ([path, mode]) => {
      const found = await call<{ mode: number }>('stat', [path]).catch(() => undefined);
      return found !== undefined && (found.mode & 0o7777) !== mode;
    },
    chown: async () => true,
    copyFile: async () => true,
    cp: async () => true,
    lchown: async () => true,
    link: async () => true,
    mkdir: async ([path]) => !(await isThere(path)),
    mkdtemp: async () => true,
    rename: async () => true,
    rm: async ([path]) => isThere(path),
    rmdir: async () => true,
    symlink: async () => true,
    truncate: async () => true,
    unlink: async () => true,
    utimes: async () => true,
    writeFile: async () => true,
  };
  for (const [name, isChange] of Object.entries(changes)) {
    functions[name] = async (...given: unknown[]) => {
      const life = lives.getStore();
      if (life === undefined) return call(name, given);
      if (life.dead) return never();
      if (!(await isChange(given))) return asLook(life, () => call(name, given));
      const target = name === 'rename' || name === 'link' ? given[1] : given[0];
      return asStep(life, `${name} ${nameOf(target)}`, () => call(name, given));
    };
  }
  for (const name of ['access', 'lstat', 'opendir', 'readFile', 'readdir', 'readlink', 'realpath', 'stat', 'statfs']) {
    functions[name] = (...given: unknown[]) => {
      const life = lives.getStore();
      return life === undefined ? call(name, given) : asLook(life, () => call(name, given));
    };
  }
  const pathOf = new WeakMap<object, string>();
  functions['open'] = async (...given: unknown[]) => {
    const life = lives.getStore();
    const open = async (): Promise<FileHandle> => {
      const handle = await call<FileHandle>('open', given);
      watchHandles(handle);
      return handle;
    };
    if (life === undefined) return open();
    if (life.dead) return never();
    const [path, asked = 'r'] = given;
    const flags = typeof asked === 'number' ? asked : flagsOf(asked as string); // it takes nothing else
    const makes = (flags & (constants.O_CREAT | constants.O_TRUNC)) !== 0;
    const cuts = (flags & constants.O_TRUNC) !== 0;
    const isChange = makes && (cuts || !(await isThere(path)));
    const held = async (): Promise<FileHandle> => {
      const handle = await open();
      pathOf.set(handle, nameOf(path));
      life.hold(() => void closeQuietly(handle));
      return handle;
    };
    return isChange ? asStep(life, `open ${nameOf(path)}`, held) : asLook(life, held);
  };

  let handlesWatched = false;
  const closeQuietly = (handle: FileHandle): Promise<void> => handle.close().catch(() => {}); // it may be closed already
  const watchHandles = (handle: FileHandle): void => {
    if (handlesWatched) return;
    handlesWatched = true;
    const prototype = Object.getPrototypeOf(handle) as Functions;
    const original = { ...Object.fromEntries(handleFunctions.map((name) => [name, prototype[name]])) };
    for (const name of handleFunctions) {
      prototype[name] = function (this: object, ...given: unknown[]) {
        const act = (): Promise<unknown> =>
          (original[name] as (...all: unknown[]) => Promise<unknown>).apply(this, given);
        const life = lives.getStore();
        if (life === undefined) return act();
        if (life.dead) return never();
        if (!handleChanges.has(name)) return asLook(life, act);
        return asStep(life, `${name} ${pathOf.get(this) ?? 'a file'}`, act);
      };
    }
  };

  const watch = fs.watch as unknown as (...given: unknown[]) => fs.FSWatcher;
  (fs as unknown as Functions)['watch'] = (...given: unknown[]) => {
    const watcher = watch(...given);
    lives.getStore()?.hold(() => watcher.close());
    return watcher;
  };
}

/** A file that is synced is no other file to anyone but a power cut. */
const handleChanges = new Set(['appendFile', 'chmod', 'chown', 'truncate', 'utimes', 'write', 'writeFile', 'writev']);
const handleFunctions = [...handleChanges, 'sync', 'datasync', 'read', 'readFile', 'readv', 'stat'];

/** Programs that change nothing when they are called so. */
const onlyLooks = /^(ip -json|bridge -json|nft (--json )?list|\S+ --version|qemu-img --version)|-- qemu-img\sinfo\s/;

function watchPrograms(): void {
  const { spawn, execFile } = childProcess;
  const words = (program: unknown, given: unknown): string =>
    [program, ...(Array.isArray(given) ? given : [])].map(nameOf).join(' ').slice(0, 160);
  /** Says nothing, ever. */
  const stillborn = (): ChildProcess => {
    const child: ChildProcess = new ChildProcess();
    child.unref = () => {};
    child.kill = () => true;
    return child;
  };
  const functions = childProcess as unknown as Functions;
  functions['spawn'] = (...given: unknown[]) => {
    const start = (): ChildProcess => (spawn as unknown as (...all: unknown[]) => ChildProcess)(...given);
    const life = lives.getStore();
    if (life === undefined) return start();
    const step = life.begin(`start ${words(given[0], given[1])}`);
    if (!step.goesOn) return stillborn();
    const child = start();
    const forget = life.hold(() => {
      for (const pipe of [child.stdin, child.stdout, child.stderr]) pipe?.destroy();
      silence(child);
    });
    child.once('exit', forget);
    return step.end() ? stillborn() : child;
  };
  functions['execFile'] = (...given: unknown[]) => {
    const run = execFile as unknown as (...all: unknown[]) => ChildProcess;
    const life = lives.getStore();
    if (life === undefined) return run(...given);
    const name = words(given[0], given[1]);
    const tell = given.at(-1) as (...said: unknown[]) => void;
    if (onlyLooks.test(name)) {
      if (life.dead) return stillborn();
      return run(...given.slice(0, -1), (...said: unknown[]) => {
        if (!life.dead) tell(...said);
      });
    }
    const step = life.begin(`run ${name}`);
    if (!step.goesOn) return stillborn();
    return run(...given.slice(0, -1), (...said: unknown[]) => {
      if (!step.end()) tell(...said);
    });
  };

  const kill = process.kill.bind(process);
  process.kill = (pid, signal) => {
    const life = lives.getStore();
    if (life === undefined || signal === 0) return kill(pid, signal);
    const step = life.begin(`signal ${signal}`);
    if (!step.goesOn) return true;
    try {
      return kill(pid, signal);
    } finally {
      step.end();
    }
  };
}

function silence(source: EventEmitter): void {
  source.emit = () => true;
}

function watchSockets(): void {
  const { connect, write } = net.Socket.prototype;
  const owners = new WeakMap<net.Socket, { readonly life: Living; asked: (() => boolean) | undefined }>();
  const prototype = net.Socket.prototype as unknown as Functions;
  prototype['connect'] = function (this: net.Socket, ...given: unknown[]) {
    const life = lives.getStore();
    if (life === undefined) return (connect as Anything as (...all: unknown[]) => unknown).apply(this, given);
    if (life.dead) return this;
    const owner = { life, asked: undefined as (() => boolean) | undefined };
    owners.set(this, owner);
    const emit = this.emit.bind(this) as (...all: unknown[]) => boolean;
    this.emit = (...news: unknown[]) => {
      if (news[0] === 'data' && owner.asked !== undefined && isAnswer(life, news[1])) {
        const end = owner.asked;
        owner.asked = undefined;
        end();
      }
      return life.dead ? true : emit(...news);
    };
    const forget = life.hold(() => this.destroy());
    this.once('close', forget);
    return (connect as Anything as (...all: unknown[]) => unknown).apply(this, given);
  };
  prototype['write'] = function (this: net.Socket, ...given: unknown[]) {
    const go = (): unknown => (write as Anything as (...all: unknown[]) => unknown).apply(this, given);
    const owner = owners.get(this);
    if (owner === undefined) return go();
    if (owner.life.dead) return true;
    const name = changeAskedBy(owner.life, given[0]);
    if (name === undefined) return go();
    const step = owner.life.begin(`ask for ${name}`);
    if (!step.goesOn) return true;
    owner.asked = step.end;
    return go();
  };
  const { listen } = net.Server.prototype;
  (net.Server.prototype as unknown as Functions)['listen'] = function (this: net.Server, ...given: unknown[]) {
    const life = lives.getStore();
    if (life?.dead) return this;
    if (life !== undefined) {
      const connections = new Set<net.Socket>();
      this.on('connection', (socket) => connections.add(socket));
      const forget = life.hold(() => {
        this.close();
        for (const socket of connections) socket.destroy();
      });
      this.once('close', forget);
    }
    return (listen as Anything as (...all: unknown[]) => unknown).apply(this, given);
  };
}

const bytesOf = (said: unknown): Buffer => (Buffer.isBuffer(said) ? said : Buffer.from(String(said)));

function changeAskedBy(life: Living, said: unknown): string | undefined {
  for (const talk of life.talks) {
    const name = talk.changeAskedBy(bytesOf(said));
    if (name !== undefined) return name;
  }
  return undefined;
}

function isAnswer(life: Living, said: unknown): boolean {
  return life.talks.some((talk) => talk.isAnswer(bytesOf(said)));
}
