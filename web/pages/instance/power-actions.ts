// What can be done with the power of an instance in its present state. Pure.

import type { Instance } from '../../../src/api/resources/instance.ts';

export interface PowerAction {
  readonly name: 'Start' | 'Stop' | 'Suspend' | 'Suspend to disk' | 'Resume';
  /** What it changes in the spec. */
  readonly change: Partial<Pick<Instance['spec'], 'powerState' | 'suspendTo' | 'starts'>>;
}

const suspendToDisk: PowerAction = {
  name: 'Suspend to disk',
  change: { powerState: 'suspended', suspendTo: 'disk' },
};
const stop: PowerAction = { name: 'Stop', change: { powerState: 'stopped' } };

/** The last time may have been to disk. */
function suspend({ suspendTo }: Instance['spec']): PowerAction {
  const change = { powerState: 'suspended' as const };
  return { name: 'Suspend', change: suspendTo === undefined ? change : { ...change, suspendTo: 'memory' } };
}

export function powerActions({ spec, status }: Pick<Instance, 'spec' | 'status'>): readonly PowerAction[] {
  switch (spec.powerState) {
    case 'stopped':
      return [{ name: 'Start', change: { powerState: 'running' } }];
    case 'suspended':
      return [{ name: 'Resume', change: { powerState: 'running' } }, stop];
    case 'running':
      // One that ended by itself is still asked to run: a start is counted.
      if (status.phase === 'Exited' || status.phase === 'Failed')
        return [{ name: 'Start', change: { starts: (spec.starts ?? 0) + 1 } }];
      return status.phase === 'Running' ? [suspend(spec), suspendToDisk, stop] : [stop];
  }
}
