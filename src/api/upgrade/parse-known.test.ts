import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { Heartbeat, Registration, Reports, Session } from '../agent-protocol.ts';
import { ApiError } from '../errors.ts';
import { parseKnown } from './parse-known.ts';

const registration: Registration = {
  session: 'session-1',
  machineId: 'machine-1',
  agentId: `agent_${'0'.repeat(26)}`,
  bootId: 'boot-1',
  architecture: 'amd64',
  capacity: { VCPU: 4 },
  reserved: {},
  labels: {},
  drivers: [{ name: 'qemu', available: true }],
  images: [],
  agentVersion: '0.3.0',
};
const report = { instanceId: `inst_${'0'.repeat(26)}`, incarnation: 1, sequence: 1, state: 'running' };
const session: Session = { hostId: 'host_1', epoch: 1, heartbeatMs: 5_000, offlineAfterMs: 60_000 };

describe('what an agent of a newer version says', () => {
  it.each([
    ['a field of a registration', Registration, { ...registration, smell: 'fine' }, registration],
    [
      'a field of a driver in it',
      Registration,
      { ...registration, drivers: [{ ...registration.drivers[0], flies: { far: true } }] },
      registration,
    ],
    ['a field of a heartbeat', Heartbeat, { epoch: 1, mood: [1] }, { epoch: 1 }],
    [
      'a field of its readiness',
      Heartbeat,
      { epoch: 1, notReady: { stopping: true, message: 'm', until: 5 } },
      { epoch: 1, notReady: { stopping: true, message: 'm' } },
    ],
    ['a field of a session, from a newer server', Session, { ...session, takesMore: true }, session],
  ])('%s is ignored', (_, schema, input, known) => {
    expect(parseKnown(schema, input)).toEqual(known);
  });

  it.each([
    ['a word that is none of a list', Registration, { ...registration, architecture: 'riscv' }, 'architecture'],
    ['a class that is no name', Registration, { ...registration, capacity: { 'no class': 1 } }, 'capacity'],
    ['a missing field', Heartbeat, { mood: 1 }, 'epoch'],
    ['a number that is none', Heartbeat, { epoch: 'one', mood: 1 }, 'epoch'],
    ['a report without its state', Reports, { epoch: 1, reports: [{ ...report, state: 5 }], mood: 1 }, 'reports'],
  ])('%s is refused as before', (_, schema, input, field) => {
    let refused: unknown;
    try {
      parseKnown<typeof Registration | typeof Heartbeat | typeof Reports>(schema, input);
    } catch (error) {
      refused = error;
    }
    expect(refused).toBeInstanceOf(ApiError);
    expect(refused).toMatchObject({ code: 'InvalidRequest', field: expect.stringContaining(field) });
  });

  it('takes the form that fits, of several', () => {
    const closed = { additionalProperties: false } as const;
    const either = Type.Union([
      Type.Object({ type: Type.Literal('a'), a: Type.Integer() }, closed),
      Type.Object({ type: Type.Literal('b'), b: Type.Integer() }, closed),
    ]);
    expect(parseKnown(either, { type: 'b', b: 1, a: 2, c: 3 })).toEqual({ type: 'b', b: 1 });
  });
});
