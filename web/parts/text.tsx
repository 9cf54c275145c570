// Text of users and guests, as text: it cannot turn the direction of what stands beside it, its control characters are seen, and it ends
// somewhere.

import { Anchor } from '@mantine/core';
import { type ReactNode, useState } from 'react';

const lengthMax = 256;
/** C0 and C1 controls, and the characters that change the direction of text or have no width. */
const hidden = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Each hidden character as its code: `\u202e` → `⟨U+202E⟩`. */
export function visibleText(text: string): string {
  return text.replace(hidden, (char) => `⟨U+${char.charCodeAt(0).toString(16).toUpperCase().padStart(4, '0')}⟩`);
}

export function Text({ children }: { readonly children: string }): ReactNode {
  const [all, setAll] = useState(false);
  const text = visibleText(children);
  if (text.length <= lengthMax || all) return <bdi>{text}</bdi>;
  return (
    <>
      <bdi>{text.slice(0, lengthMax)}</bdi>…{' '}
      <Anchor component="button" type="button" onClick={() => setAll(true)}>
        show all
      </Anchor>
    </>
  );
}
