// The rogues of a run: a client that sends garbage, and an agent that lies with the token of the first host.

import type { Prng } from '../../base/prng.ts';
import type { Tally } from '../batch/tally.ts';
import type { CommittedState } from '../history.ts';
import type { Network } from '../world/network.ts';
import type { Peer } from '../world/peer.ts';
import { createProcessClock } from '../world/process-clock.ts';
import { RogueAgent } from '../world/rogue-agent.ts';
import { createRogueClient } from '../world/rogue-client.ts';
import type { Timeline } from '../world/timeline.ts';

export interface RoguesOptions {
  readonly timeline: Timeline;
  readonly network: Network;
  readonly state: CommittedState;
  readonly prng: Prng;
  readonly tally: Tally;
  readonly hosts: readonly string[];
  readonly onViolation: (invariant: number, message: string) => void;
}

const answerTimeoutMs = 9000;

export function createRogues({ timeline, network, state, prng, tally, hosts, onViolation }: RoguesOptions) {
  const optionsOf = (name: string, principal: Peer['principal']) => ({
    send: network.fetchFor({ name, principal, clock: createProcessClock(timeline), answerTimeoutMs }),
    state,
    prng: prng.split(),
    tally,
    onViolation,
  });
  const [host = ''] = hosts;
  const client = createRogueClient(optionsOf('rogue', { kind: 'admin' }));
  const agent = new RogueAgent({ ...optionsOf(host, { kind: 'host', host }), host, hosts });
  return { client, agent };
}
