// The text of a token: `berth_<kind>_<id>_<secret>_<crc>`. The id is public, for logs; the CRC spares scanners for leaked secrets false
// alarms, and protects nothing.

import { assert } from '../base/assert.ts';

/** `u`: of a login; `s`: of a service, or a share; `j`: with which a host joins; `h`: of a host. */
export const tokenKinds = ['u', 's', 'j', 'h'] as const;
export type TokenKind = (typeof tokenKinds)[number];

export interface TokenText {
  readonly kind: TokenKind;
  /** Public. */
  readonly id: string;
  readonly text: string;
}

/** Random bytes that a token is made of: 8 for its id, 32 for its secret. */
export const tokenBytes = 40;

const digits = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz';
const idLength = 10;
const secretLength = 43; // 62^43 > 2^256
const crcLength = 6; // 62^6 > 2^32
const pattern = new RegExp(
  `^berth_([${tokenKinds.join('')}])_([0-9A-Za-z]{${idLength}})_[0-9A-Za-z]{${secretLength}}_([0-9A-Za-z]{${crcLength}})$`,
);

/** `random`: `tokenBytes` unpredictable bytes. */
export function makeToken(kind: TokenKind, random: Uint8Array): TokenText {
  assert(random.length === tokenBytes, `a token is made of ${tokenBytes} random bytes`);
  const id = base62(numberOf(random.subarray(0, 8)), idLength);
  const secret = base62(numberOf(random.subarray(8)), secretLength);
  const content = `berth_${kind}_${id}_${secret}`;
  return { kind, id, text: `${content}_${crcOf(content)}` };
}

/** Undefined: no token, or one that was cut or mistyped. Whether it opens anything is not known here. */
export function parseToken(text: string): TokenText | undefined {
  const [, letter, id, crc] = pattern.exec(text) ?? [];
  const kind = tokenKinds.find((each) => each === letter);
  if (kind === undefined || id === undefined || crc !== crcOf(text.slice(0, -1 - crcLength))) return undefined;
  return { kind, id, text };
}

/** Whether the text is meant to be one of our tokens, well formed or not. */
export function looksLikeToken(text: string): boolean {
  return /^berth[_-]/.test(text);
}

function crcOf(content: string): string {
  let text = '';
  for (let rest = crc32(content); text.length < crcLength; rest = Math.floor(rest / 62))
    text = `${digits[rest % 62]}${text}`;
  return text;
}

/** The last `length` digits. */
function base62(number: bigint, length: number): string {
  let text = '';
  for (let rest = number; text.length < length; rest /= 62n) text = `${digits[Number(rest % 62n)]}${text}`;
  return text;
}

function numberOf(bytes: Uint8Array): bigint {
  return bytes.reduce((number, byte) => (number << 8n) | BigInt(byte), 0n);
}

/** As in zip and PNG, of ASCII. */
function crc32(text: string): number {
  let crc = 0xffff_ffff;
  for (let i = 0; i < text.length; i++) crc = (crc >>> 8) ^ (crcTable[(crc ^ text.charCodeAt(i)) & 0xff] ?? 0);
  return (crc ^ 0xffff_ffff) >>> 0;
}

const crcTable = Array.from({ length: 256 }, (_, byte) => {
  let crc = byte;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb8_8320 : crc >>> 1;
  return crc;
});
