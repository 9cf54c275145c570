import { describe, expect, it } from 'vitest';
import { encodeRecord } from '../../core/state/codec.ts';
import { schemaVersion } from '../../core/state/upgrade.ts';
import { testImage } from '../../core/testing.ts';
import { JsonWriter } from './json-writer.ts';
import { present } from './routes/present.ts';

const decoder = new TextDecoder();
const written = (writer: JsonWriter): string => decoder.decode(writer.take());

describe('a stored resource', () => {
  const image = testImage('tiny');
  const withText = { ...image, metadata: { ...image.metadata, labels: { note: 'grüße "revision":0, 🛏' } } };

  it.each([1, 9, 10, 123_456_789])('bears revision %d, and is else as it is read', (revision) => {
    const writer = new JsonWriter(1);
    expect(writer.resource(encodeRecord(withText), revision)).toBe(true);
    expect(JSON.parse(written(writer))).toEqual(present({ value: withText, revision }));
  });

  it('stands among other text', () => {
    const writer = new JsonWriter(16);
    writer.text('{"ü":[');
    writer.resource(encodeRecord(image), 7);
    writer.text(',');
    writer.resource(encodeRecord(withText), 70);
    writer.text(']}');
    expect(JSON.parse(written(writer))).toEqual({
      ü: [present({ value: image, revision: 7 }), present({ value: withText, revision: 70 })],
    });
  });

  it.each([
    ['of an older form', { ...image, schemaVersion: schemaVersion - 1 }],
    ['whose fields stand in another order', { metadata: image.metadata, kind: 'image', schemaVersion }],
    ['that has a revision already', { ...image, metadata: { ...image.metadata, revision: 5 } }],
  ])('%s is left to who can read it', (_, value) => {
    const writer = new JsonWriter(16);
    expect(writer.resource(new TextEncoder().encode(JSON.stringify(value)), 7)).toBe(false);
    expect(written(writer)).toBe('');
  });
});
