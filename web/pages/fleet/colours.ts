// How a host is coloured on the map: by its state, or by how much of it is held. The sign says the same without colour.

import type { HostStateName } from '../../../src/api/resources/host-state.ts';

export interface Look {
  readonly colour: string;
  /** Drawn into the cell; empty: nothing. */
  readonly sign: string;
}

const byState: Readonly<Record<string, Look>> = {
  Ready: { colour: '#2b8a3e', sign: '' },
  NotReady: { colour: '#c92a2a', sign: '!' },
  Unknown: { colour: '#e8590c', sign: '?' },
  Down: { colour: '#7a1010', sign: '×' },
  Draining: { colour: '#1864ab', sign: '↓' },
  Paused: { colour: '#5c5f66', sign: '=' },
};

export function lookOfState(state: HostStateName): Look {
  return byState[state] ?? { colour: '#868e96', sign: '' };
}

/** `share`: 0 to 1 of its scarcest class; undefined: not known. */
export function lookOfShare(share: number | undefined): Look {
  if (share === undefined) return { colour: '#868e96', sign: '?' };
  const at = Math.max(0, Math.min(1, share));
  // From a pale to a dark blue: as light as it is empty.
  return { colour: `hsl(212 70% ${Math.round(82 - 54 * at)}%)`, sign: at >= 0.995 ? '■' : '' };
}
