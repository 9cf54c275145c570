// Ends an agent at every step of what it does, once at each, and has a test look at what is left and at what the next agent makes of it. Used by
// tests only.
//
// Of two moments at which the world is the same, one stands for both: what an agent has learned dies with it, so right after one step the world is
// as right before the next; and while a file is written that gets its name when it is whole, it is not visible. So an agent dies before each step, and after
// it where it does not die before the next; inside of such a file at the first of its kind; among rights of files at each that follows another than
// before. With BERTH_EVERY_STEP=1 it dies before and after each and every one.

import { environment } from '../base/system.ts';
import { beginLife, type Death, type EngineTalk, type Life } from './test-life.ts';

export interface EveryStep {
  readonly talks?: readonly EngineTalk[];
  /** How many lives there are at the same time. Default 1. */
  readonly atOnce?: number;
  /** The names of steps that are tried elsewhere, in the same code. Default: none. */
  readonly alike?: RegExp;
}

/**
 * What depends on how fast an engine is may be fewer steps another time; an agent then lives on, and nothing is seen of that moment. It is tried once
 * more, as many steps before the end as it was the first time.
 */
const missedShareMax = 0.05;

/**
 * Calls `attempt` with a life that nothing ends, and then with one for each moment. It is to begin in a world of its own, or in the one that it left
 * the time before; to have an agent `live`; and, whether that died of it or not, to have another one finish. Answers with the names of the steps.
 * Throws what `attempt` throws, with the step at which the agent died, and when more than a few agents lived on.
 */
export async function atEveryStep(
  attempt: (life: Life) => Promise<void>,
  { talks = [], atOnce = 1, alike }: EveryStep = {},
): Promise<readonly string[]> {
  const whole = beginLife({ talks });
  await attempt(whole);
  const steps = [...whole.steps];
  await whole.kill();
  const deaths = environment()['BERTH_EVERY_STEP'] === undefined ? chosenDeaths(steps, alike) : allDeaths(steps);
  const left = deaths.values();
  const missed: string[] = [];
  /** How many steps the agent did; it died at the last of them, or lived on when there was none more. */
  const dieAt = async (death: Death): Promise<number> => {
    const life = beginLife({ death, talks });
    try {
      await attempt(life);
      return life.steps.length;
    } catch (error) {
      const done = life.steps.map((name, step) => (step === death.step ? `>> ${name}` : name)).join('\n');
      throw new Error(`an agent that died ${death.when} step ${death.step} of\n${done}`, { cause: error });
    } finally {
      await life.kill();
    }
  };
  const one = async (): Promise<void> => {
    for (const death of left) {
      const done = await dieAt(death);
      if (done > death.step) continue;
      const fromTheEnd = steps.length - death.step;
      const again = { ...death, step: Math.max(0, done - fromTheEnd) };
      if ((await dieAt(again)) <= again.step) missed.push(`${death.when} step ${death.step}, ${steps[death.step]}`);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, one));
  if (missed.length > Math.max(1, missedShareMax * deaths.length))
    throw new Error(
      `of ${deaths.length} agents, ${missed.length} did not come to where they were to die:\n${missed.join('\n')}`,
    );
  return steps;
}

const allDeaths = (steps: readonly string[]): Death[] =>
  steps.flatMap((_, step): Death[] => [
    { step, when: 'before' },
    { step, when: 'after' },
  ]);

function chosenDeaths(steps: readonly string[], alike: RegExp | undefined): Death[] {
  const tried = new Set<string>();
  const isChosen = steps.map((name, step) => {
    const unseen = /^(open|write|writeFile) .*\.(tmp|new|unpacking)$/.test(name);
    const given = /^(chown|chmod) /.test(name);
    const place = unseen ? name : given ? `${steps[step - 1]} ${name}` : String(step);
    if (tried.has(place) || alike?.test(name)) return false;
    tried.add(place);
    return true;
  });
  return steps.flatMap((_, step): Death[] => [
    ...(isChosen[step] ? [{ step, when: 'before' } as const] : []),
    ...(isChosen[step] && !isChosen[step + 1] ? [{ step, when: 'after' } as const] : []),
  ]);
}
