// Attempts against guests that answer in every way there is, over connections within this process.

import { Duplex } from 'node:stream';
import { describe, expect, it } from 'vitest';
import type { Check } from '../../../api/resources/check.ts';
import { createManualClock } from '../../../base/manual-clock.ts';
import { system } from '../../../base/system.ts';
import { DriverError } from '../../host/driver-error.ts';
import type { GuestAccess, GuestCommand, ImageHealth } from '../../drivers/access.ts';
import type { Driver } from '../../drivers/driver.ts';
import { probe } from './probe.ts';

const turn = (): Promise<void> => new Promise((resolve) => system.afterTurn(resolve));

interface Scene {
  readonly access?: GuestAccess;
  /** How long the attempt is left alone before its time is over. */
  readonly late?: boolean;
}

async function attempt(check: Check, { access, late = false }: Scene) {
  const clock = createManualClock();
  const left: GuestCommand[] = [];
  const driver = { name: 'test', ...(access === undefined ? {} : { access }) } as Driver; // what an attempt uses of it
  const done = probe(check, {
    ...{ driver, instanceId: 'inst_1', clock, timeoutMs: 1000, signal: new AbortController().signal },
    onLeft: (command) => left.push(command),
  });
  if (late)
    await clock.advanceSettled(1000, async () => {
      for (let turns = 0; turns < 12; turns++) await turn();
    });
  const answer = await done;
  return { answer: answer.ok ? 'ok' : answer.message, left };
}

/** The guest's end says this after it has heard a whole request. */
function connection(answer: string | undefined): { readonly stream: Duplex; heard(): string } {
  let heard = '';
  const stream = new Duplex({
    read() {},
    write(data: Buffer, _encoding, done) {
      heard += data.toString();
      if (answer !== undefined && heard.includes('\r\n\r\n')) this.push(answer);
      done();
    },
  });
  return { stream, heard: () => heard };
}

const withDial = (answer: string | undefined) => {
  const { stream, heard } = connection(answer);
  return { access: { dial: async () => stream }, heard, stream };
};
const status = (code: number): string => `HTTP/1.1 ${code} X\r\ncontent-length: 0\r\n\r\n`;

describe('http', () => {
  const check = { http: { port: 80, path: '/healthz?deep=1', host: 'shop.example' } };
  it.each([
    [200, 'ok'],
    [204, 'ok'],
    [302, 'ok'],
    [399, 'ok'],
    [400, 'GET /healthz?deep=1 was answered with status 400'],
    [404, 'GET /healthz?deep=1 was answered with status 404'],
    [503, 'GET /healthz?deep=1 was answered with status 503'],
  ])('%i', async (code, expected) => {
    const { access, heard, stream } = withDial(status(code));
    expect((await attempt(check, { access })).answer).toBe(expected);
    expect(heard()).toMatch(/^GET \/healthz\?deep=1 HTTP\/1\.1\r\n[^]*host: shop\.example/i);
    expect(stream.destroyed).toBe(true);
  });

  it('that is no HTTP has failed', async () => {
    expect((await attempt(check, withDial('SSH-2.0-OpenSSH\r\n\r\n'))).answer).toMatch(/was not answered: /);
  });

  it('without an answer has failed after its time, and lets the connection go', async () => {
    const { access, stream } = withDial(undefined);
    expect((await attempt(check, { access, late: true })).answer).toBe('no answer within 1000 ms');
    await turn();
    expect(stream.destroyed).toBe(true);
  });
});

describe('tcp', () => {
  it('is what the driver says', async () => {
    const check = { tcp: { port: 80 } };
    const refused = async () => {
      throw new DriverError('NotPossible', 'port 80 of the guest accepts no connection');
    };
    expect((await attempt(check, { access: { reach: async () => {} } })).answer).toBe('ok');
    expect((await attempt(check, { access: { reach: refused } })).answer).toBe(
      'port 80 of the guest accepts no connection',
    );
    expect((await attempt(check, {})).answer).toBe('driver "test" has no way to ports of its guests');
  });
});

function command(code: number | undefined, said = '') {
  const ended = Promise.withResolvers<{ readonly code: number }>();
  if (code !== undefined) ended.resolve({ code });
  const run: GuestCommand = {
    async *output() {
      if (said !== '') yield { stream: 'stderr', data: Buffer.from(said) };
      await ended.promise;
    },
    write: () => Promise.resolve(),
    endInput: () => {},
    resize: () => Promise.resolve(),
    exit: ended.promise,
    kill: () => ended.resolve({ code: 137 }),
  };
  return { access: { exec: async () => run }, run };
}

describe('exec', () => {
  const check = { exec: { command: ['pg_isready'] } };
  it('passes with code 0 and says the last line of another end', async () => {
    expect((await attempt(check, command(0, 'fine\n'))).answer).toBe('ok');
    expect((await attempt(check, command(2, 'trying\nno response\n'))).answer).toBe(
      'the command ended with code 2: no response',
    );
  });

  it('that hangs has failed after its time, and is handed over to be ended', async () => {
    const hanging = command(undefined);
    const { answer, left } = await attempt(check, { ...hanging, late: true });
    expect(answer).toBe('no answer within 1000 ms');
    expect(left).toEqual([hanging.run]);
  });

  it('keeps little of a command that says much', async () => {
    const { answer } = await attempt(check, command(1, 'x'.repeat(1_000_000)));
    expect(answer.length).toBeLessThan(400);
  });
});

it.each<[ImageHealth, string]>([
  ['healthy', 'ok'],
  ['starting', 'its HEALTHCHECK says starting'],
  ['unhealthy', 'its HEALTHCHECK says unhealthy'],
  ['none', 'its image has no HEALTHCHECK'],
])('the HEALTHCHECK of an image: %s', async (health, expected) => {
  expect((await attempt({ image: {} }, { access: { imageHealth: async () => health } })).answer).toBe(expected);
});
