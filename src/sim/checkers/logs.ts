// Invariant 9, of logs: at rest the log of an attempt that succeeded has exactly the lines that its program has printed, of each stream in their order:
// none is lost, none comes twice, also when a process died on the way. A log that is said to be incomplete is none that was promised.

import type { Job, JobAttempt } from '../../api/resources/job.ts';
import { programOfCommit } from '../world/commits.ts';
import { printedBy } from '../workload/draw-script.ts';
import type { Checker, Facts } from './checker.ts';

export const logsChecker = (facts: Facts): Checker =>
  facts.runLog === undefined ? { invariant: 9 } : new LogsChecker(facts, facts.runLog);

/** With another one, the agent says what is missing. */
const wholeMessage = 'the program succeeded';

class LogsChecker implements Checker {
  readonly invariant = 9;
  readonly #facts: Facts;
  readonly #logOf: (instanceId: string) => string;
  /** Attempts whose log was whole. It stays so. */
  readonly #seen = new Set<string>();

  constructor(facts: Facts, logOf: (instanceId: string) => string) {
    this.#facts = facts;
    this.#logOf = logOf;
  }

  *unrest(): Iterable<string> {
    const { state, excused } = this.#facts;
    for (const job of state.list('job')) {
      const program = programOf(job);
      for (const attempt of job.status.attempts) {
        if (program === undefined || excused.instance(attempt.instanceId) || !isWhole(attempt)) continue;
        const fault = this.#seen.has(attempt.instanceId) ? undefined : this.#faultOf(program, attempt);
        if (fault === undefined) this.#seen.add(attempt.instanceId);
        else yield `job ${job.metadata.name}: ${fault}`;
      }
    }
  }

  #faultOf(program: string, { number, instanceId }: JobAttempt): string | undefined {
    const log = this.#logOf(instanceId);
    for (const stream of ['stdout', 'stderr'] as const) {
      const [kept, printed] = [textOf(log, stream), printedBy(program, stream)];
      if (kept !== printed)
        return `the log of attempt ${number} has ${JSON.stringify(kept)} of ${stream}, and it printed ${JSON.stringify(printed)}`;
    }
    return undefined;
  }
}

function programOf({ spec: { script, repo } }: Job): string | undefined {
  return script ?? (repo && programOfCommit(repo.commit));
}

function isWhole({ outcome, message }: JobAttempt): boolean {
  return outcome === 'succeeded' && message === wholeMessage;
}

/** Of lines `TIME STREAM TAG TEXT`; tag P: the line goes on. */
function textOf(log: string, stream: string): string {
  let text = '';
  for (const line of log.split('\n')) {
    const [, of, tag, ...words] = line.split(' ');
    if (of === stream) text += `${words.join(' ')}${tag === 'P' ? '' : '\n'}`;
  }
  return text;
}
