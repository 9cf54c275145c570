// A new token: its text, for who asked for it, and what the store keeps of it.

import { makeToken, tokenBytes, type TokenKind } from '../../../api/token-text.ts';
import type { TokenProof } from '../../../core/operations/access/token.ts';
import { digestOf } from './authenticate.ts';

/** The text is given to the client once, and kept nowhere. */
export type MintToken = (kind: TokenKind) => TokenProof & { readonly text: string };

export function minting(randomSecret: (length: number) => Uint8Array): MintToken {
  return (kind) => {
    const { id: tokenId, text } = makeToken(kind, randomSecret(tokenBytes));
    return { text, tokenId, digest: digestOf(text) };
  };
}
