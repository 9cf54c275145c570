// Keys that work on a whole page; never while something is typed, but those with Ctrl.

import { useEffect } from 'react';

type Keys = Readonly<Record<string, () => void>>;

/** `'?'`, `'/'`, `'mod+k'`: Ctrl, or Command on a Mac. */
export function useKeys(keys: Keys): void {
  useEffect(() => {
    const onKey = (event: KeyboardEvent): void => {
      const mod = event.ctrlKey || event.metaKey;
      if (!mod && isTyping(event.target)) return;
      const act = keys[mod ? `mod+${event.key.toLowerCase()}` : event.key];
      if (act === undefined || event.altKey) return;
      event.preventDefault();
      act();
    };
    document.addEventListener('keydown', onKey);
    return () => document.removeEventListener('keydown', onKey);
  });
}

function isTyping(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select, [contenteditable], .xterm') !== null;
}
