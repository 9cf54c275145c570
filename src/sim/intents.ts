// Intents: what tenants asked for and what was answered, kept outside everything under test. Checkers compare the cluster with it.

export interface CreateIntent {
  /** The idempotency key, and the label `sim-key` of whatever it makes. */
  readonly key: string;
  readonly tenant: string;
  /** `accepted`: answered 2xx with this id. `refused`: answered otherwise. `open`: not answered yet. */
  outcome: 'open' | 'accepted' | 'refused';
  instanceId: string | undefined;
}

export interface Intents {
  readonly creates: Map<string, CreateIntent>;
  /** Ids whose deletion was ever asked for, answered or not. */
  readonly deletesAsked: Set<string>;
  /** Ids whose deletion was answered 2xx. */
  readonly deletesAccepted: Set<string>;
  /** What requests to /schedule were answered, by id. `released`: its release was answered 2xx. */
  readonly schedules: Map<string, { readonly key: string; readonly released: boolean }>;
}

export function createIntents(): Intents {
  return { creates: new Map(), deletesAsked: new Set(), deletesAccepted: new Set(), schedules: new Map() };
}

export const keyLabel = 'sim-key';
