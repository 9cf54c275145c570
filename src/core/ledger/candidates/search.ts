// Search: the allocation candidates of a question, found one by one until there are as many as asked for. Semantics are
// those of OpenStack Placement. The original makes all combinations of a tree first and limits them afterwards; here the
// work is bounded by what is returned and the providers looked at (its bug 2070257).

import type { Prng } from '../../../base/prng.ts';
import type {
  CandidateAnswer,
  CandidateIndex,
  CandidateOrder,
  CandidateProvider,
  CandidateQuestion,
  CandidateRequest,
} from '../candidate-question.ts';
import { Anchors } from './anchors.ts';
import { type FoundCandidate, TreeSearch } from './tree-search.ts';
import { type SlotAsk, slotsAskedBy, slotsIn } from './slots.ts';

/** For questions without a limit: as many as an answer may have. */
const candidatesMax = 50_000;
/** Steps that end without a candidate, of all trees together: about a second, as a step takes at most 20 µs. */
const fruitlessStepsMax = 50_000;
/** The same for one tree, and what each tree gets when all together have used theirs. */
const stepsOfTreeMax = 10_000;
const stepsOfTreeMin = 50;

const stableOrder: CandidateOrder = { strategy: 'depth-first' };

/** Finds candidates; claims nothing. The same index, question and order give the same answer. */
export function findCandidates(
  index: CandidateIndex,
  question: CandidateQuestion,
  order: CandidateOrder = stableOrder,
): CandidateAnswer {
  const found = new Found(index, question);
  const searches = searchesOf(index, question, order.prng, found);
  if (order.strategy === 'depth-first') {
    for (const search of searches) while (!found.full() && found.take(search)) continue;
  } else {
    // Each tree is opened when its first turn comes, so that a limit also limits the trees looked at.
    let turn: TreeSearch[] = [];
    for (const search of searches) if (found.take(search)) turn.push(search);
    while (turn.length > 0 && !found.full()) turn = turn.filter((search) => !found.full() && found.take(search));
  }
  return found.answer();
}

/** One search per tree that has a provider for every part of the question. */
function* searchesOf(
  index: CandidateIndex,
  question: CandidateQuestion,
  prng: Prng | undefined,
  found: Found,
): Iterable<TreeSearch> {
  const anchors = new Anchors(index, question);
  const asks = slotsAskedBy(question, index);
  const mayClash = question.groupPolicy === 'isolate' || asksTwiceForAClass(asks);
  const roots = prng ? shuffled(anchors.roots(), prng) : anchors.roots();
  for (const root of roots) {
    if (found.full()) return;
    const anchor = anchors.at(root);
    const slots = anchor && slotsIn(anchor, asks);
    if (!slots) continue;
    const ordered = prng ? slots.map((slot) => ({ ...slot, options: shuffled(slot.options, prng) })) : slots;
    yield new TreeSearch({ slots: ordered, question, index, mayClash });
  }
}

function asksTwiceForAClass(asks: readonly SlotAsk[]): boolean {
  const classes = asks.flatMap(({ amounts }) => Object.keys(amounts));
  return new Set(classes).size < classes.length;
}

class Found {
  readonly #index: CandidateIndex;
  readonly #question: CandidateQuestion;
  readonly #limit: number;
  readonly #requests: CandidateRequest[] = [];
  readonly #used = new Set<CandidateProvider>();
  /** Requests that take nothing but what is shared, which several trees find. */
  readonly #ofSharing = new Set<string>();
  #fruitlessSteps = 0;
  #complete = true;

  constructor(index: CandidateIndex, question: CandidateQuestion) {
    this.#index = index;
    this.#question = question;
    this.#limit = Math.min(question.limit ?? candidatesMax, candidatesMax);
  }

  full(): boolean {
    return this.#requests.length >= this.#limit;
  }

  /** Takes the next candidate of a tree; false when there are no more. */
  take(search: TreeSearch): boolean {
    const remaining = fruitlessStepsMax - this.#fruitlessSteps;
    const stepsMax = Math.max(stepsOfTreeMin, Math.min(stepsOfTreeMax, remaining));
    const before = search.steps;
    const next = search.next(stepsMax);
    if (typeof next === 'string') {
      this.#fruitlessSteps += search.steps - before;
      if (next === 'gave-up') this.#complete = false;
      return false;
    }
    if (next.onlyShared && this.#isKnown(next)) return true;
    this.#requests.push(next.request);
    for (const provider of next.providers) this.#used.add(provider);
    if (this.#requests.length === candidatesMax) this.#complete = false;
    return true;
  }

  answer(): CandidateAnswer {
    return { requests: this.#requests, summarized: this.#summarized(), complete: this.#complete };
  }

  #isKnown({ request }: FoundCandidate): boolean {
    const key = JSON.stringify(request);
    if (this.#ofSharing.has(key)) return true;
    this.#ofSharing.add(key);
    return false;
  }

  #summarized(): readonly CandidateProvider[] {
    if (!this.#question.nested) return [...this.#used];
    const roots = new Set([...this.#used].map(({ root }) => root));
    return [...roots].flatMap((root) => this.#index.tree(root));
  }
}

function shuffled<T>(items: readonly T[], prng: Prng): T[] {
  const copy = [...items];
  for (let last = copy.length - 1; last > 0; last--) {
    const other = prng.below(last + 1);
    const moved = copy[last];
    const taken = copy[other];
    if (moved === undefined || taken === undefined) continue;
    copy[last] = taken;
    copy[other] = moved;
  }
  return copy;
}
