import { crc32 } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { looksLikeToken, makeToken, parseToken, tokenBytes, tokenKinds } from './token-text.ts';

const random = Uint8Array.from({ length: tokenBytes }, (_, i) => (i * 37 + 11) % 256);
const { text } = makeToken('s', random);

describe('the text of a token', () => {
  it.each(tokenKinds)('is read as it was made: kind %s', (kind) => {
    const made = makeToken(kind, random);
    expect(made.text).toMatch(/^berth_[usjh]_[0-9A-Za-z]{10}_[0-9A-Za-z]{43}_[0-9A-Za-z]{6}$/);
    expect(parseToken(made.text)).toEqual(made);
  });

  it.each([0, 255])('has a fixed length, of bytes that are all %i', (byte) => {
    const made = makeToken('u', new Uint8Array(tokenBytes).fill(byte));
    expect(made.text).toHaveLength(text.length);
    expect(parseToken(made.text)).toEqual(made);
  });

  it('ends with the CRC-32 of everything before, as zlib has it', () => {
    const [content, crc] = [text.slice(0, -7), text.slice(-6)];
    const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
    expect(Array.from(crc).reduce((sum, digit) => sum * 62 + digits.indexOf(digit), 0)).toBe(crc32(content));
  });

  it('of other bytes has another id and another secret', () => {
    const other = makeToken(
      's',
      random.map((byte) => byte ^ 1),
    );
    const [, , id, secret] = text.split('_');
    expect(other.text).not.toContain(id);
    expect(other.text).not.toContain(secret);
  });

  it.each([
    ['cut', text.slice(0, -1)],
    ['cut by half', text.slice(0, 30)],
    ['with a wrong CRC', `${text.slice(0, -1)}${text.endsWith('0') ? '1' : '0'}`],
    ['with another letter in its secret', text.replace(/_(.)(.{42})_/, (_, a, b) => `_${a === '0' ? '1' : '0'}${b}_`)],
    ['of another kind', text.replace('berth_s_', 'berth_u_')],
    ['of an unknown kind', text.replace('berth_s_', 'berth_x_')],
    ['in capitals', text.toUpperCase()],
    ['with a space', `${text} `],
    ['with a line feed', `${text}\n`],
    ['twice', text + text],
    ['empty', ''],
    ['4 KiB long', 'berth_s_'.padEnd(4096, 'x')],
  ])('is refused when it is %s', (_, wrong) => {
    expect(parseToken(wrong)).toBeUndefined();
  });

  it.each([
    [text, true],
    ['berth-host.web.x', true],
    ['berth-operator.x', true],
    ['eyJhbGciOiJub25lIn0', false],
  ])('is told from what is no token: %s', (given, expected) => {
    expect(looksLikeToken(given)).toBe(expected);
  });
});
