import { expect, it } from 'vitest';
import { powerActions } from './power-actions.ts';

const actions = (spec: object, phase: string): readonly unknown[] =>
  powerActions({ spec, status: { phase } } as unknown as Parameters<typeof powerActions>[0]).map(
    ({ name, change }) => `${name} ${JSON.stringify(change)}`,
  );

const toDisk = 'Suspend to disk {"powerState":"suspended","suspendTo":"disk"}';
const stop = 'Stop {"powerState":"stopped"}';

it.each([
  [{ powerState: 'running' }, 'Running', ['Suspend {"powerState":"suspended"}', toDisk, stop]],
  [
    { powerState: 'running', suspendTo: 'disk' },
    'Running',
    ['Suspend {"powerState":"suspended","suspendTo":"memory"}', toDisk, stop],
  ],
  [{ powerState: 'running' }, 'Pending', [stop]],
  [{ powerState: 'running', starts: 2 }, 'Failed', ['Start {"starts":3}']],
  [{ powerState: 'running' }, 'Exited', ['Start {"starts":1}']],
  [{ powerState: 'suspended' }, 'Suspended', ['Resume {"powerState":"running"}', stop]],
  [{ powerState: 'stopped' }, 'Stopped', ['Start {"powerState":"running"}']],
])('%j while %s: %j', (spec, phase, expected) => {
  expect(actions(spec, phase)).toEqual(expected);
});
