import * as fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import {
  type AgentCommand,
  CommandDecoder,
  dataBytesMax,
  encodeCommand,
  encodeFrame,
  FrameDecoder,
  type GuestFrame,
  type Heard,
  runnerPhases,
  runStreams,
} from './protocol.ts';

const nonce = 'a1b2c3d4e5f60718';
const bootId = '0d7c4f3a-8a55-4f0e-9f0c-3c2f5b6a7d81';
const welcome: GuestFrame = { kind: 'welcome', nonce, bootId, phase: 'new' };

function heardOf(pieces: readonly Uint8Array[], nonces: readonly string[] = [nonce]): Heard[] {
  const decoder = new FrameDecoder();
  for (const each of nonces) decoder.expect(each);
  return plain(pieces.flatMap((piece) => decoder.push(piece)));
}

/** Bytes that compare by their content only. */
function plain(frames: readonly Heard[]): Heard[] {
  return frames.map((frame) => (frame.kind === 'data' ? { ...frame, bytes: Uint8Array.from(frame.bytes) } : frame));
}

function cut(bytes: Uint8Array, at: readonly number[]): Uint8Array[] {
  const places = [0, ...at.map((each) => each % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
}

const offset = fc.nat({ max: 2 ** 40 });
const frame: fc.Arbitrary<GuestFrame> = fc.oneof(
  fc.record({
    kind: fc.constant('data' as const),
    stream: fc.constantFrom(...runStreams),
    offset,
    bytes: fc.oneof(
      fc.uint8Array({ maxLength: 300 }),
      fc.constant(Uint8Array.from(encodeFrame({ kind: 'exit', code: 0 }))),
    ),
  }),
  fc.record({ kind: fc.constant('exit' as const), code: fc.nat({ max: 255 }) }),
  fc.record({ kind: fc.constant('done' as const), status: fc.nat({ max: 255 }) }),
  fc.record({ kind: fc.constant('pong' as const), nonce: fc.constant(nonce) }),
  fc.record({
    kind: fc.constant('welcome' as const),
    nonce: fc.constant('00000000'),
    bootId: fc.constant(bootId),
    phase: fc.constantFrom(...runnerPhases),
  }),
);
const pieces = fc.array(fc.nat({ max: 5000 }), { maxLength: 12 });

describe('FrameDecoder', () => {
  it('reads back what a guest wrote, however it is cut', () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 12 }), fc.boolean(), pieces, (frames, check, places) => {
        const bytes = Buffer.concat([welcome, ...frames].map((each) => encodeFrame(each, { check })));
        expect(heardOf(cut(bytes, places))).toEqual([welcome, ...frames]);
      }),
    );
  });

  it('drops a torn frame, and what was under way before, up to the welcome', () => {
    fc.assert(
      fc.property(frame, frame, fc.nat(), pieces, (torn, after, keep, places) => {
        const begun = encodeFrame(torn);
        const bytes = Buffer.concat([
          begun.subarray(0, keep % (begun.length + 1)),
          encodeFrame(welcome),
          encodeFrame(after),
        ]);
        expect(heardOf(cut(bytes, places))).toEqual([welcome, after]);
      }),
    );
  });

  it('believes nothing before a welcome that it expects', () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 12 }), fc.uint8Array({ maxLength: 3000 }), (frames, noise) => {
        const bytes = Buffer.concat([noise, ...frames.map((each) => encodeFrame(each))]);
        expect(heardOf([bytes])).toEqual([]);
      }),
    );
  });

  it('keeps little of endless noise', () => {
    fc.assert(
      fc.property(fc.uint8Array({ minLength: 1, maxLength: 500 }), fc.boolean(), (noise, synced) => {
        const decoder = new FrameDecoder();
        decoder.expect(nonce);
        if (synced) decoder.push(encodeFrame(welcome));
        for (let i = 0; i < 50; i++)
          for (const heard of decoder.push(noise)) expect(['lost', 'begin']).toContain(heard.kind);
      }),
    );
  });

  it.each<[string, string]>([
    ['a length above the limit', `berth1 data stdout 0 ${dataBytesMax + 1} - .\n`],
    ['an offset that is no safe integer', 'berth1 data stdout 9007199254740991 10 - .\n'],
    ['a negative length', 'berth1 data stdout 0 -1 - .\n'],
    ['an unknown stream', 'berth1 data console 0 1 - .\nx'],
    ['a wrong checksum', 'berth1 data stdout 0 1 123 .\nx'],
    ['an exit code above 255', 'berth1 exit 256 .\n'],
    ['a header without its dot', 'berth1 exit 0\n'],
    ['a header without an end', 'berth1 exit '.padEnd(300, '0')],
    ['another version', 'berth2 exit 0 .\n'],
    ['text', 'hello\n'],
  ])('is lost after %s, and finds the next welcome', (_, bytes) => {
    const next = { ...welcome, nonce: 'b1b2c3d4e5f60718' };
    const heard = heardOf([encodeFrame(welcome), Buffer.from(bytes), encodeFrame(next)], [nonce, next.nonce]);
    expect(heard.map(({ kind }) => kind)).toEqual(['welcome', 'lost', 'welcome']);
  });

  it('believes a nonce once, so that a guest cannot ask for one hello after the other', () => {
    const again = [encodeFrame(welcome), Buffer.from('hello\n')];
    expect(heardOf([...again, ...again, ...again]).map(({ kind }) => kind)).toEqual(['welcome', 'lost']);
  });

  it('hears a runner begin before the welcome', () => {
    expect(heardOf([encodeFrame({ kind: 'begin', bootId })])).toEqual([{ kind: 'begin', bootId }]);
  });
});

describe('CommandDecoder', () => {
  const command: fc.Arbitrary<AgentCommand> = fc.oneof(
    fc.record({
      kind: fc.constant('hello' as const),
      nonce: fc.constant(nonce),
      offsets: fc.record({ stdout: offset, stderr: offset, artifacts: offset }),
    }),
    fc.record({ kind: fc.constant('ack' as const), stream: fc.constantFrom(...runStreams), offset }),
    fc.record({ kind: fc.constant('ping' as const), nonce: fc.constant(nonce) }),
    fc.record({ kind: fc.constant('bye' as const), power: fc.constantFrom('off' as const, 'stay' as const) }),
    fc.record({
      kind: fc.constant('put' as const),
      file: fc.constantFrom('env', 'script'),
      how: fc.constantFrom('new' as const, 'more' as const),
      text: fc.stringMatching(/^[a-z\\0-9]{1,40}$/),
    }),
    fc.record({ kind: fc.constantFrom('go' as const, 'term' as const, 'kill' as const) }),
  );

  it('reads back what an agent wrote, however it is cut', () => {
    fc.assert(
      fc.property(fc.array(command, { maxLength: 12 }), pieces, (commands, places) => {
        const decoder = new CommandDecoder();
        const bytes = Buffer.concat(commands.map(encodeCommand));
        expect(cut(bytes, places).flatMap((piece) => decoder.push(piece))).toEqual(commands);
      }),
    );
  });

  it('leaves out a command that was torn', () => {
    const decoder = new CommandDecoder();
    const torn = encodeCommand({ kind: 'ack', stream: 'stdout', offset: 12_345 }).subarray(0, -4);
    expect(decoder.push(Buffer.concat([torn, Buffer.from('\n'), encodeCommand({ kind: 'go' })]))).toEqual([
      { kind: 'go' },
    ]);
  });
});
