// Tree search: the candidates of one tree, by backtracking over the slots. It holds one path of choices at a time. Each
// choice is checked at once against those before it and, cheaply, against what those after it still need.

import type { Amounts } from '../../../api/resources/metadata.ts';
import type { CandidateIndex, CandidateProvider, CandidateQuestion, CandidateRequest } from '../candidate-question.ts';
import { capacityOf } from '../ledger.ts';
import { enoughForAll } from './enough-for-all.ts';
import { SameSubtree } from './same-subtree.ts';
import type { Slot } from './slots.ts';

export interface FoundCandidate {
  readonly request: CandidateRequest;
  /** Those that something is taken from. */
  readonly providers: readonly CandidateProvider[];
  /** Whether all of them share with other trees, so that the search of another tree may find the same. */
  readonly onlyShared: boolean;
}

interface TreeQuestion {
  readonly slots: readonly Slot[];
  readonly question: CandidateQuestion;
  readonly index: CandidateIndex;
  /** Whether one slot may take what another needs. */
  readonly mayClash: boolean;
}

export class TreeSearch {
  readonly #slots: readonly Slot[];
  readonly #question: CandidateQuestion;
  readonly #sameSubtree: SameSubtree;
  /** Whether a second provider of a tree is refused. */
  readonly #oneOfTree: boolean;
  /** Of each open slot, which option is tried. */
  readonly #tried: number[];
  readonly #chosen: CandidateProvider[] = [];
  readonly #claimed = new Map<CandidateProvider, Map<string, number>>();
  readonly #mayClash: boolean;
  /** Each slot has one option, which no other slot can spoil: most trees have one provider. */
  readonly #oneWay: boolean;
  /** Options tried so far. */
  steps = 0;
  #ended = false;

  constructor({ slots, question, index, mayClash }: TreeQuestion) {
    this.#slots = slots;
    this.#question = question;
    this.#sameSubtree = new SameSubtree(slots, question, index);
    this.#oneOfTree = !question.nested && index.nested();
    this.#tried = slots.map(() => -1);
    this.#mayClash = mayClash;
    this.#oneWay =
      !mayClash &&
      !this.#oneOfTree &&
      question.sameSubtree.length === 0 &&
      slots.every(({ options }) => options.length === 1);
    this.#ended = slots.length === 0 || !this.#canComplete();
  }

  /** The next candidate; `gave-up`: none within `stepsMax` steps, `none`: no more. Nothing follows either. */
  next(stepsMax: number): FoundCandidate | 'none' | 'gave-up' {
    if (this.#oneWay && !this.#ended) return this.#onlyOne();
    if (this.#chosen.length === this.#slots.length) this.#undo();
    for (const last = this.steps + stepsMax; !this.#ended; this.steps++) {
      if (this.steps >= last) {
        this.#ended = true;
        return 'gave-up';
      }
      const depth = this.#chosen.length;
      const at = (this.#tried[depth] ?? -1) + 1;
      this.#tried[depth] = at;
      const option = this.#slots[depth]?.options[at];
      if (!option) this.#back(depth);
      else if (this.#mayTake(option, depth)) {
        this.#take(option, depth);
        if (!this.#canComplete()) this.#undo();
        else if (depth + 1 === this.#slots.length) return this.#found();
      }
    }
    return 'none';
  }

  #onlyOne(): FoundCandidate {
    for (const { options } of this.#slots) this.#chosen.push(...options);
    this.#ended = true;
    this.steps += this.#slots.length;
    return this.#found();
  }

  #back(depth: number): void {
    this.#tried[depth] = -1;
    if (depth === 0) this.#ended = true;
    else this.#undo();
  }

  #mayTake(option: CandidateProvider, depth: number): boolean {
    const slot = this.#slots[depth];
    if (!slot) return false;
    const before = this.#claimed.get(option);
    if (before && !hasRoomFor(option, before, slot.amounts)) return false;
    if (this.#question.groupPolicy === 'isolate' && slot.group.suffix !== '' && this.#isIsolated(option)) return false;
    return !this.#oneOfTree || !this.#chosen.some((other) => other !== option && other.root === option.root);
  }

  #isIsolated(option: CandidateProvider): boolean {
    return this.#chosen.some((other, slot) => other === option && this.#slots[slot]?.group.suffix !== '');
  }

  #take(option: CandidateProvider, depth: number): void {
    this.#chosen.push(option);
    this.#claim(option, this.#slots[depth]?.amounts ?? {}, 1);
  }

  #undo(): void {
    const option = this.#chosen.pop();
    if (option) this.#claim(option, this.#slots[this.#chosen.length]?.amounts ?? {}, -1);
  }

  #claim(option: CandidateProvider, amounts: Amounts, sign: 1 | -1): void {
    let claimed = this.#claimed.get(option);
    if (!claimed) this.#claimed.set(option, (claimed = new Map()));
    for (const resourceClass in amounts)
      claimed.set(resourceClass, (claimed.get(resourceClass) ?? 0) + sign * (amounts[resourceClass] ?? 0));
  }

  /** False: no choices for the slots that remain make a candidate. True promises nothing, but is seldom wrong. */
  #canComplete(): boolean {
    return (
      this.#traitsCanCome() &&
      this.#sameSubtree.canHold(this.#chosen) &&
      (!this.#mayClash ||
        enoughForAll({
          slots: this.#slots,
          chosen: this.#chosen,
          claimed: this.#claimed,
          isolate: this.#question.groupPolicy === 'isolate',
        }))
    );
  }

  /** Whether each required trait of the group without a suffix is there, or may come with a slot that remains. */
  #traitsCanCome(): boolean {
    const plain = this.#slots.find(({ group }) => group.suffix === '')?.group;
    if (!plain || plain.required.length === 0) return true;
    return plain.required.every((any) =>
      this.#slots.some(({ group, options }, at) => {
        if (group !== plain) return false;
        const chosen = this.#chosen[at];
        return (chosen ? [chosen] : options).some(({ traits }) => any.some((trait) => traits.includes(trait)));
      }),
    );
  }

  #found(): FoundCandidate {
    const allocations: Record<string, Record<string, number>> = {};
    const mappings: Record<string, string[]> = {};
    const providers = new Set<CandidateProvider>();
    for (const [at, { group, amounts }] of this.#slots.entries()) {
      const provider = this.#chosen[at];
      if (!provider) continue;
      const mapped = (mappings[group.suffix] ??= []);
      if (!mapped.includes(provider.id)) mapped.push(provider.id);
      for (const resourceClass in amounts) {
        const held = (allocations[provider.id] ??= {});
        held[resourceClass] = (held[resourceClass] ?? 0) + (amounts[resourceClass] ?? 0);
        providers.add(provider);
      }
    }
    const onlyShared = this.#chosen.every(({ traits }) => traits.includes(sharingTrait));
    return { request: { allocations, mappings }, providers: [...providers], onlyShared };
  }
}

const sharingTrait = 'MISC_SHARES_VIA_AGGREGATE';

function hasRoomFor(
  { inventories, used }: CandidateProvider,
  claimed: ReadonlyMap<string, number>,
  amounts: Amounts,
): boolean {
  for (const resourceClass in amounts) {
    const inventory = inventories[resourceClass];
    const together = (claimed.get(resourceClass) ?? 0) + (amounts[resourceClass] ?? 0);
    if (!inventory || together > inventory.maxUnit) return false;
    if ((used.get(resourceClass) ?? 0) + together > capacityOf(inventory)) return false;
  }
  return true;
}
