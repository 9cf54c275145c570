// Run: one program that a guest executes once, and what is known of it. The agent of the host carries it into the guest
// and reports it; it knows nothing of jobs, which are a matter of the control plane.

import { type Static, Type } from 'typebox';
import { ContainerEnv, type Env } from './container.ts';

const closed = { additionalProperties: false } as const;

/** A relative path inside the work directory, without `..`, empty parts or control characters. */
const InnerPath = Type.String({
  pattern: '^(?!/)(?!.*(^|/)\\.\\.?(/|$))(?!.*//)[^\\u0000-\\u001f\\u007f]+(?<!/)$',
  maxLength: 1024,
  description: 'a relative path without "..": .solstice/job.sh',
});

export const RunRepository = Type.Object(
  {
    url: Type.String({
      pattern: '^https?://[^\\s/?#@\\u0000-\\u001f]+(/[^\\s?#\\u0000-\\u001f]*)?$',
      maxLength: 2048,
      description: 'an http or https URL without user name or password',
    }),
    commit: Type.String({
      pattern: '^([0-9a-f]{40}|[0-9a-f]{64})$',
      description: 'the full hash of the commit: 40 or 64 lower-case hex digits',
    }),
    path: Type.Optional(
      Type.String({
        ...InnerPath,
        description: 'the file to run, relative to the work tree; default .solstice/job.sh',
      }),
    ),
  },
  closed,
);
export type RunRepository = Static<typeof RunRepository>;

/** `path` of a repository that names none. */
export const runPathDefault = '.solstice/job.sh';

export const runFields = {
  script: Type.Optional(
    Type.String({
      minLength: 1,
      maxLength: 65_536,
      pattern: '^[^\\u0000]*$',
      description: 'run by "sh -c" in the work directory; default: the file that the repository names',
    }),
  ),
  repo: Type.Optional(
    Type.Unsafe<RunRepository>({ ...RunRepository, description: 'the work directory has the files of this commit' }),
  ),
  env: Type.Unsafe<Env>({
    ...ContainerEnv,
    description: 'environment variables of the program: values, or { secret, key }',
  }),
  artifacts: Type.Array(
    Type.String({
      ...InnerPath,
      maxLength: 256,
      description: 'a shell pattern relative to the work directory: build/*.tar',
    }),
    { default: [], maxItems: 64, description: 'files to keep, whether or not the program succeeds' },
  ),
} as const;

export const RunSpec = Type.Object(
  {
    ...runFields,
    timeLimitMs: Type.Integer({
      default: 3_600_000,
      minimum: 1_000,
      maximum: 7 * 24 * 3_600_000,
      description: 'the program is ended after this time',
    }),
    graceMs: Type.Integer({
      default: 10_000,
      minimum: 0,
      maximum: 600_000,
      description: 'between SIGTERM and SIGKILL when it is ended',
    }),
    holdOnFailure: Type.Boolean({
      default: false,
      description: 'the guest stays up when the program fails; else it powers off when the program has ended',
    }),
    warm: Type.Optional(
      Type.Enum(['waiting', 'claimed'], {
        description:
          'set by warm pools. waiting: the guest boots before there is a program; claimed: it has got one since',
      }),
    ),
  },
  closed,
);
export type RunSpec = Static<typeof RunSpec>;

/**
 * waiting → running → finishing → ended. waiting: the guest has not begun it. finishing: the program has ended, and its
 * log and artifacts are still on the way to the control plane. ended: they have arrived, or are given up.
 */
export const RunState = Type.Enum(['waiting', 'running', 'finishing', 'ended']);
export type RunState = Static<typeof RunState>;

/**
 * How a program ended. exited: by itself, with `exitCode` (128 + n for signal n). cancelled: stopped on request.
 * timedOut: its time limit was over. lost: the guest or the host ended, or the program could not be given to the guest.
 */
export const RunOutcome = Type.Enum(['exited', 'cancelled', 'timedOut', 'lost']);
export type RunOutcome = Static<typeof RunOutcome>;

export const RunStatus = Type.Object(
  {
    state: RunState,
    outcome: Type.Optional(RunOutcome),
    exitCode: Type.Optional(Type.Integer({ minimum: 0, maximum: 255 })),
    /** Why it is lost, or what is missing of log or artifacts: a CamelCase code and a sentence. */
    reason: Type.Optional(Type.String({ maxLength: 64 })),
    message: Type.Optional(Type.String({ maxLength: 1024 })),
    startedAtMs: Type.Optional(Type.Integer()),
    endedAtMs: Type.Optional(Type.Integer()),
    logBytes: Type.Optional(Type.Integer({ minimum: 0, description: 'that the control plane has received' })),
    logTruncated: Type.Optional(Type.Boolean({ description: 'the log reached its limit; the rest was dropped' })),
    artifactsBytes: Type.Optional(Type.Integer({ minimum: 0, description: 'of the archive with the artifacts' })),
  },
  closed,
);
export type RunStatus = Static<typeof RunStatus>;
