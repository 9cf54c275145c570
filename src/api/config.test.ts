import { Type } from 'typebox';
import { describe, expect, it } from 'vitest';
import { type ConfigSources, resolveConfig, variableOf } from './config.ts';

const schema = Type.Object(
  {
    listen: Type.String({ default: '127.0.0.1:7070', minLength: 3 }),
    dataDirectory: Type.Optional(Type.String()),
    hostName: Type.Optional(Type.String()),
    heartbeatMs: Type.Integer({ default: 10_000, minimum: 100 }),
    insecure: Type.Boolean({ default: false }),
    drivers: Type.Array(Type.String(), { default: ['qemu'] }),
    labels: Type.Record(Type.String(), Type.String(), { default: {} }),
    reserved: Type.Optional(Type.Record(Type.String(), Type.Integer())),
  },
  { additionalProperties: false },
);

function resolve(sources: Partial<ConfigSources>) {
  return resolveConfig(schema, { environment: {}, flags: {}, prefix: 'BERTH_X_', ...sources });
}
const file = (value: unknown) => ({ path: 'x.yaml', value });

describe('configuration', () => {
  it('is the defaults of the schema when nobody says anything', () =>
    expect(resolve({ file: file(null) })).toEqual({
      listen: '127.0.0.1:7070',
      heartbeatMs: 10_000,
      insecure: false,
      drivers: ['qemu'],
      labels: {},
    }));

  it.each<[string, Partial<ConfigSources>, string]>([
    ['the machine before the schema', { defaults: { listen: 'machine' } }, 'machine'],
    ['a file before the machine', { defaults: { listen: 'machine' }, file: file({ listen: 'file' }) }, 'file'],
    [
      'the environment before a file',
      { file: file({ listen: 'file' }), environment: { BERTH_X_LISTEN: 'environment' } },
      'environment',
    ],
    [
      'a flag before the environment',
      { environment: { BERTH_X_LISTEN: 'environment' }, flags: { listen: 'flag' } },
      'flag',
    ],
    [
      'the environment when the flag was not given',
      { environment: { BERTH_X_LISTEN: 'environment' }, flags: { listen: undefined } },
      'environment',
    ],
    [
      'a file when the variable is empty',
      { file: file({ listen: 'file' }), environment: { BERTH_X_LISTEN: '' } },
      'file',
    ],
  ])('takes %s', (_, sources, expected) => expect(resolve(sources).listen).toBe(expected));

  it('reads variables as the type of their key', () =>
    expect(
      resolve({
        environment: {
          BERTH_X_HEARTBEAT_MS: '500',
          BERTH_X_INSECURE: 'true',
          BERTH_X_DRIVERS: 'qemu, fake',
          BERTH_X_LABELS: 'zone=a,tier=1',
          BERTH_X_RESERVED: 'MEMORY_MB=1024',
          OTHER: 'x',
        },
      }),
    ).toMatchObject({
      heartbeatMs: 500,
      insecure: true,
      drivers: ['qemu', 'fake'],
      labels: { zone: 'a', tier: '1' },
      reserved: { MEMORY_MB: 1024 },
    }));

  it.each<[string, Partial<ConfigSources>, string]>([
    [
      'an unknown key of the file',
      { file: file({ lissten: 'x' }) },
      'x.yaml: unknown key "lissten"; did you mean "listen"?',
    ],
    ['a file that is a list', { file: file(['x']) }, 'x.yaml must be a map of keys to values'],
    [
      'an unknown variable',
      { environment: { BERTH_X_LISSTEN: 'x' } },
      'unknown environment variable BERTH_X_LISSTEN; did you mean "BERTH_X_LISTEN"?',
    ],
    [
      'a variable that is no number',
      { environment: { BERTH_X_HEARTBEAT_MS: 'soon' } },
      'heartbeatMs must be a number, not "soon"; it comes from BERTH_X_HEARTBEAT_MS',
    ],
    [
      'a variable that is neither true nor false',
      { environment: { BERTH_X_INSECURE: 'yes' } },
      'insecure must be true or false, not "yes"; it comes from BERTH_X_INSECURE',
    ],
    [
      'a flag below its minimum',
      { flags: { heartbeatMs: '5' } },
      'heartbeatMs must be >= 100; it comes from --heartbeat-ms',
    ],
    ['a wrong type in the file', { file: file({ drivers: 'qemu' }) }, 'drivers must be a list; it comes from x.yaml'],
  ])('refuses %s', (_, sources, message) => expect(() => resolve(sources)).toThrow(message));

  it('says how to give what is missing', () =>
    expect(() =>
      resolveConfig(Type.Object({ hostName: Type.String() }), { environment: {}, flags: {}, prefix: 'BERTH_X_' }),
    ).toThrow('hostName is missing: give --name, BERTH_X_HOST_NAME or "hostName" in the configuration file'));

  it('names variables after keys', () =>
    expect(variableOf('dataDirectory', 'BERTH_X_')).toBe('BERTH_X_DATA_DIRECTORY'));
});
