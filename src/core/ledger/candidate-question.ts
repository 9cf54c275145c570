// Candidate question: what a client of allocation candidates asks for, the providers it is asked of, and the answer. Types
// only. Terms are those of OpenStack Placement (docs.openstack.org/api-ref/placement, "List allocation candidates").

import type { Amounts } from '../../api/resources/metadata.ts';
import type { Prng } from '../../base/prng.ts';
import type { Inventory } from '../state/records.ts';

export interface CandidateProvider {
  readonly id: string;
  readonly parent: string | null;
  /** Of its tree; its own id, when it has no parent. */
  readonly root: string;
  readonly generation: number;
  readonly inventories: Readonly<Record<string, Inventory>>;
  readonly used: ReadonlyMap<string, number>;
  readonly traits: readonly string[];
  /** UUIDs. */
  readonly aggregates: readonly string[];
}

/** The providers of a fleet. Nothing in it changes during a search. */
export interface CandidateIndex {
  /** Ids of all roots, in a stable order. */
  roots(): readonly string[];
  /** The members of a tree, the root first, always in the same order; empty for an id that is no root. */
  tree(root: string): readonly CandidateProvider[];
  provider(id: string): CandidateProvider | undefined;
  /** Ids of the providers with the trait `MISC_SHARES_VIA_AGGREGATE`. */
  sharing(): Iterable<string>;
  /** Whether any provider has a parent. */
  nested(): boolean;
}

/** What is asked of one provider, or, without a suffix, of one tree and the providers that share with it. */
export interface CandidateGroup {
  /** Empty: this group may be spread over several providers, each class whole from one of them. */
  readonly suffix: string;
  /** May be empty in a group of `sameSubtree`. */
  readonly resources: Amounts;
  /** One trait of each list. */
  readonly required: readonly (readonly string[])[];
  readonly forbidden: readonly string[];
  /** One aggregate of each list. */
  readonly memberOf: readonly (readonly string[])[];
  readonly forbiddenAggregates: readonly string[];
  /** Any provider of the tree. */
  readonly inTree?: string;
}

export interface CandidateQuestion {
  /** In the order of the query. */
  readonly groups: readonly CandidateGroup[];
  /** `isolate`: each group with a suffix has a provider of its own. */
  readonly groupPolicy: 'none' | 'isolate';
  /** Traits that the root of the tree has, and such that it has not. */
  readonly rootRequired: readonly string[];
  readonly rootForbidden: readonly string[];
  /** Of each list of suffixes, the provider of one group is the same as, or above, the providers of all others. */
  readonly sameSubtree: readonly (readonly string[])[];
  /** Absent: all. */
  readonly limit?: number;
  /** False before version 1.29: no candidate uses two providers of one tree. */
  readonly nested: boolean;
}

/** The order in which candidates are found, which with a limit decides what is found. */
export interface CandidateOrder {
  /** `depth-first`: all candidates of a tree, then those of the next; `breadth-first`: one of each tree in turn. */
  readonly strategy: 'depth-first' | 'breadth-first';
  /** Absent: stable. Present: trees, and providers in each, in random order. */
  readonly prng?: Prng;
}

export interface CandidateRequest {
  /** By provider id, then resource class. */
  readonly allocations: Readonly<Record<string, Amounts>>;
  /** Provider ids by suffix. */
  readonly mappings: Readonly<Record<string, readonly string[]>>;
}

export interface CandidateAnswer {
  readonly requests: readonly CandidateRequest[];
  /** The providers to summarize: whole trees, when the question is nested; else those in the requests. */
  readonly summarized: readonly CandidateProvider[];
  /** False: the search gave up on some tree with very many combinations, none of which fitted for long. */
  readonly complete: boolean;
}
