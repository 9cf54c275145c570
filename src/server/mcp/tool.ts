// A tool: a name and schema for language models, and the calls of the API that it stands for.

import type { Static, TObject } from 'typebox';
import type { UserClient } from '../../api/client/user-client.ts';
import type { PlanHash } from './plan-hash.ts';

export interface ToolContext {
  /** Calls the API as the caller: rights and audit log are the API's. */
  readonly client: UserClient;
  /** Where the arguments name none. */
  readonly project: string;
  readonly planHash: PlanHash;
  readonly signal: AbortSignal;
}

export interface ToolAnswer {
  /** Facts that Berth vouches for: counts, cursors, hashes, advice. */
  readonly facts: Readonly<Record<string, unknown>>;
  /** What users or guests wrote, or what may contain that. */
  readonly untrusted?: unknown;
}

export interface Tool {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: TObject;
  /** It changes something: only with writes allowed. */
  readonly writes: boolean;
  /** What it does cannot be undone by another call. */
  readonly destructive: boolean;
  /** Repeating it with the same arguments changes nothing more. */
  readonly idempotent: boolean;
  run(input: unknown, context: ToolContext): Promise<ToolAnswer>;
}

interface Definition<S extends TObject> {
  readonly name: string;
  readonly title: string;
  readonly description: string;
  readonly input: S;
  readonly writes?: true;
  readonly destructive?: true;
  run(input: Static<S>, context: ToolContext): Promise<ToolAnswer>;
}

/** The library checks the input by the schema before `run`. */
export function tool<S extends TObject>({ run, ...rest }: Definition<S>): Tool {
  const { writes = false, destructive = false } = rest;
  return {
    ...rest,
    writes,
    destructive,
    idempotent: true,
    run: (input, context) => run(input as Static<S>, context), // the codec
  };
}
