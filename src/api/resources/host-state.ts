// The state of a host: one word for what its conditions and its spec say together, for people, metrics and rules.

import { type Static, Type } from 'typebox';

const closed = { additionalProperties: false } as const;

export const hostStateNames = ['Ready', 'NotReady', 'Unknown', 'Down', 'Draining', 'Paused', 'Removed'] as const;

/**
 * Ready; NotReady: its agent says why; Unknown: its agent is silent; Down: silent past the deadline, or declared;
 * Draining and Paused: it takes no new instances; Removed: only in the event of its removal.
 */
export const HostStateName = Type.Enum([...hostStateNames]);
export type HostStateName = Static<typeof HostStateName>;

export const HostState = Type.Object(
  { name: HostStateName, sinceMs: Type.Integer() },
  { ...closed, description: 'derived from its conditions and its spec' },
);

export const OnHostLoss = Type.Enum(['replace', 'wait', 'fail']);
export type OnHostLoss = Static<typeof OnHostLoss>;
export const onHostLossHelp =
  'replace: a new copy with a fresh disk on another host; wait: until the host returns; fail: the instance fails permanently';

export const proofKinds = ['stopped', 'rebooted', 'fenced', 'self-stop', 'operator'] as const;

/** Why no guest of the host runs any more. Without one, no exclusive instance starts elsewhere. */
export const HostProof = Type.Object(
  {
    kind: Type.Enum([...proofKinds]),
    atMs: Type.Integer(),
    message: Type.String({ maxLength: 1024 }),
  },
  { ...closed, description: 'why no guest of the host runs any more; self-stop: only those that asked for it' },
);
export type HostProof = Static<typeof HostProof>;

/** The order to power a host off, written before it is carried out, and what came of it. */
export const HostFence = Type.Object(
  {
    attempt: Type.Integer({ minimum: 1 }),
    atMs: Type.Integer(),
    state: Type.Enum(['ordered', 'failed', 'done']),
    message: Type.String({ maxLength: 1024 }),
  },
  closed,
);
export type HostFence = Static<typeof HostFence>;

/** A host that is taken to be gone, although nothing of it was heard. */
export const HostDown = Type.Object(
  {
    atMs: Type.Integer(),
    reason: Type.Enum(['Silent', 'Declared']),
    message: Type.String({ maxLength: 1024 }),
    proof: Type.Optional(HostProof),
    fence: Type.Optional(HostFence),
    heldUntilMs: Type.Optional(
      Type.Integer({ description: 'many hosts fell silent together: nothing is replaced before this time' }),
    ),
  },
  { ...closed, description: 'silent past the deadline, or declared to be down; ends with the next heartbeat' },
);
export type HostDown = Static<typeof HostDown>;

/** Reason of the condition Ready while the agent is silent. */
export const agentSilent = 'AgentSilent';
/** Its agent said that it stops. Guests run on; the next registration opens the host again. */
export const agentStopped = 'AgentStopped';
/** Its agent says why it takes nothing now. */
export const agentNotReady = 'AgentNotReady';

interface Stated {
  readonly spec: { readonly paused: boolean };
  readonly status: {
    readonly conditions: readonly { readonly type: string; readonly status: string; readonly reason: string }[];
    readonly down?: HostDown;
  };
}

export function hostStateName({ spec, status }: Stated): HostStateName {
  if (status.down) return 'Down';
  const ready = status.conditions.find(({ type }) => type === 'Ready');
  if (ready?.status !== 'True')
    return ready?.reason === agentStopped || ready?.reason === agentNotReady ? 'NotReady' : 'Unknown';
  if (status.conditions.some(({ type, status: is }) => type === 'Draining' && is === 'True')) return 'Draining';
  return spec.paused ? 'Paused' : 'Ready';
}
