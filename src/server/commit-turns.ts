// Turns: who may decide next when more requests come than the store takes at once. The writers of one project wait in one line, and projects
// take turns, so that a flood of one project never delays the others. Connections with too many waiting requests are not read meanwhile. It
// knows no Plans.

/** As many Plans as the disk takes at once. Plans that are decided further ahead only grow stale and take memory. */
const aheadMaxDefault = 1_000;
/**
 * The same while several projects write: a quiet project waits at most for what the others have decided before it. 4 creates take less time
 * to decide and to write than the fsync that they share.
 */
const sharedAheadMaxDefault = 4;
/** A project that has written within this many commits takes part in the turns: at 64 creates a commit, some ten seconds of a flood. */
const commitsRemembered = 1_024;

/**
 * While several projects write, a connection with pipelined requests is not read while this many of its project wait: a request that was read
 * takes some 12 KiB, and each collection of young garbage copies all of them. 1,000 make each create wait up to 10 ms for it, 16 make it 2 ms.
 */
const readAheadMaxDefault = 16;

interface Waiting {
  readonly plans: number;
  readonly admit: () => void;
}

/** A connection with pipelined requests. */
export interface Pipelined {
  pause(): void;
  resume(): void;
}

interface Coming {
  readonly plans: number;
  /** How many Plans wait for the disk. */
  readonly queued: number;
  readonly from?: Pipelined | undefined;
}

export class CommitTurns {
  readonly #aheadMax: number;
  readonly #sharedAheadMax: number;
  readonly #readAheadMax: number;
  /** By project; the one whose turn it is first. */
  readonly #lines = new Map<string, Waiting[]>();
  /** Number of Plans admitted since the last commit began: in all, and, while several projects write, of each project. */
  #through = 0;
  readonly #throughOf = new Map<string, number>();
  /** By project: the commit before which it last wrote; least recent first. Without `unshared`. */
  readonly #cameAt = new Map<string, number>();
  #commits = 0;
  /** By project: connections that are not read now; longest first. */
  readonly #paused = new Map<string, Set<Pipelined>>();

  constructor({
    aheadMax = aheadMaxDefault,
    sharedAheadMax = sharedAheadMaxDefault,
    readAheadMax = readAheadMaxDefault,
  }: TurnLimits = {}) {
    this.#aheadMax = aheadMax;
    this.#sharedAheadMax = sharedAheadMax;
    this.#readAheadMax = readAheadMax;
  }

  /** Plans that one writer may decide at once before it waits for another turn. */
  get atOnceMax(): number {
    return this.#isShared ? this.#sharedAheadMax : Number.POSITIVE_INFINITY;
  }

  /** Undefined: continue at once. Otherwise the promise resolves when it is the project's turn. */
  enter(project: string, { plans, queued, from }: Coming): Promise<void> | undefined {
    this.note(project);
    if (!this.#lines.has(project) && this.#hasRoom(project, queued)) {
      this.#pass(project, plans);
      return undefined;
    }
    return new Promise<void>((resolve) => {
      const waiting = { plans, admit: resolve };
      const line = this.#lines.get(project);
      if (line) line.push(waiting);
      else this.#lines.set(project, [waiting]);
      if (from && line && line.length > this.#readAheadMax && this.#isShared) this.#pause(project, from);
    });
  }

  /** Nothing is under way: the writer continues at once. */
  note(project: string): void {
    if (project === unshared || this.#cameAt.get(project) === this.#commits) return;
    this.#cameAt.delete(project);
    this.#cameAt.set(project, this.#commits);
  }

  /** A commit begins, and leaves `queued` Plans for the next. */
  next(queued: number): void {
    this.#commits += 1;
    this.#through = 0;
    this.#throughOf.clear();
    this.#forget();
    const room = this.#isShared ? this.#sharedAheadMax : this.#aheadMax - queued;
    // At least one: controllers do not wait, and could fill every commit.
    for (let left = Math.max(room, 1); left > 0 && this.#lines.size > 0; ) left -= this.#admitOne();
    for (const project of this.#paused.keys()) {
      if (!this.#isShared) this.#resumeAll(project);
      else if ((this.#lines.get(project)?.length ?? 0) <= this.#readAheadMax) this.#resumeOne(project);
    }
  }

  /** Nothing is under way: no writer has to wait. */
  idle(): void {
    while (this.#lines.size > 0) this.#admitOne();
    for (const project of this.#paused.keys()) this.#resumeAll(project);
  }

  get #isShared(): boolean {
    return this.#cameAt.size > 1;
  }

  #hasRoom(project: string, queued: number): boolean {
    if (queued >= this.#aheadMax || this.#through >= this.#aheadMax) return false;
    if (!this.#isShared || project === unshared) return true;
    const share = Math.max(1, Math.floor(this.#sharedAheadMax / this.#cameAt.size));
    return (this.#throughOf.get(project) ?? 0) < share;
  }

  #pass(project: string, plans: number): void {
    this.#through += plans;
    if (this.#isShared) this.#throughOf.set(project, (this.#throughOf.get(project) ?? 0) + plans);
  }

  /** Admits the first writer of the project whose turn it is; that project is last then. Returns the writer's number of Plans. */
  #admitOne(): number {
    for (const [project, line] of this.#lines) {
      const waiting = line.shift();
      this.#lines.delete(project);
      if (line.length > 0) this.#lines.set(project, line);
      if (waiting === undefined) continue;
      this.#pass(project, waiting.plans);
      waiting.admit();
      return waiting.plans;
    }
    return 0;
  }

  #pause(project: string, connection: Pipelined): void {
    const paused = this.#paused.get(project);
    if (paused) paused.add(connection);
    else this.#paused.set(project, new Set([connection]));
    connection.pause();
  }

  /** The next read of a connection brings at most 64 KiB, which is enough for some commits. */
  #resumeOne(project: string): void {
    const paused = this.#paused.get(project);
    if (!paused) return;
    const [first] = paused;
    if (first) paused.delete(first);
    if (paused.size === 0) this.#paused.delete(project);
    first?.resume();
  }

  #resumeAll(project: string): void {
    while (this.#paused.has(project)) this.#resumeOne(project);
  }

  #forget(): void {
    for (const [project, at] of this.#cameAt) {
      if (this.#commits - at <= commitsRemembered) return;
      this.#cameAt.delete(project);
    }
  }
}

interface TurnLimits {
  readonly aheadMax?: number;
  readonly sharedAheadMax?: number;
  readonly readAheadMax?: number;
}

/** The line of what belongs to no project: reports of hosts, and resources of the fleet. It takes turns like a project, and does not delay others. */
export const unshared = '';
