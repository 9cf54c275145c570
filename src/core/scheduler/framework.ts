// What a scheduling rule is. Plugins are pure and small; they never see other requests, the clock or the store.

import type { Host } from '../../api/resources/host.ts';
import type { Provider } from '../state/records.ts';
import type { Entry } from '../state/snapshot.ts';
import type { ProfileName, Request } from './request.ts';

/** One host as rules see it. */
export interface Candidate {
  readonly host: Entry<Host>;
  readonly provider: Entry<Provider> | undefined;
  readonly used: ReadonlyMap<string, number>;
}

/** `reason` is a CamelCase code that is counted; `message` is the sentence for this host. */
export type Verdict =
  | { readonly fits: true }
  | { readonly fits: false; readonly reason: string; readonly message: string };

export const fits: Verdict = { fits: true };

export function refuse(reason: string, message: string): Exclude<Verdict, { fits: true }> {
  return { fits: false, reason, message };
}

export interface Plugin {
  readonly name: string;
  /** Whether the host may take the request; all plugins must agree. */
  filter?(candidate: Candidate, request: Request): Verdict;
  /** How good the host is, an integer 0..100. Weighed by profile; asked only for hosts that fit. */
  score?(candidate: Candidate, request: Request): number;
}

/** How much each plugin's score counts. A plugin without a weight scores nothing. */
export type Weights = Readonly<Record<string, number>>;

export interface Profile {
  readonly name: ProfileName;
  readonly weights: Weights;
}
