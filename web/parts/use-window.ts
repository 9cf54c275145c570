// Which rows of a long list are in view. All rows have the same height, so that this costs the same for any number of them.

import { type RefObject, useLayoutEffect, useState } from 'react';

export interface RowSpan {
  readonly first: number;
  /** The last one; before `first` when there is none. */
  readonly last: number;
}

interface Sizes {
  readonly count: number;
  readonly rowPx: number;
  /** Rows above and below that are drawn too, so that scrolling shows no gap. */
  readonly more: number;
}

export function spanOf(topPx: number, heightPx: number, { count, rowPx, more }: Sizes): RowSpan {
  const first = Math.min(Math.floor(topPx / rowPx), Math.max(0, count - 1));
  return {
    first: Math.max(0, first - more),
    last: Math.min(count - 1, Math.floor((topPx + heightPx) / rowPx) + more),
  };
}

/** Of what `scroller` shows. */
export function useWindow(scroller: RefObject<HTMLElement | null>, sizes: Sizes): RowSpan {
  const [{ topPx, heightPx }, setView] = useState({ topPx: 0, heightPx: 0 });
  const { rowPx } = sizes;
  useLayoutEffect(() => {
    const { current } = scroller;
    if (!current) return;
    const look = (): void => {
      const seen = { topPx: current.scrollTop - (current.scrollTop % rowPx), heightPx: current.clientHeight };
      setView((before) => (before.topPx === seen.topPx && before.heightPx === seen.heightPx ? before : seen));
    };
    look();
    const sized = new ResizeObserver(look);
    sized.observe(current);
    current.addEventListener('scroll', look, { passive: true });
    return () => {
      sized.disconnect();
      current.removeEventListener('scroll', look);
    };
  }, [scroller, rowPx]);
  return spanOf(topPx, heightPx, sizes);
}
