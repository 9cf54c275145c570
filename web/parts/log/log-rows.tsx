// The visible lines of a log, each with its number as a link.

import { useVirtualizer } from '@tanstack/react-virtual';
import { type ReactNode, type RefObject, useEffect, useImperativeHandle, useMemo, useRef } from 'react';
import { visibleText } from '../text.tsx';
import { LineText } from './line-text.tsx';
import classes from './log-view.module.css';
import { type LogTime, logTime } from './log-time.ts';
import { isGroupEnd, type RunLog } from './run-log.ts';

const rowPx = 18;
/** Maximum distance from the end at which the log is followed. */
const nearEndPx = 5;

export interface LogRowsHandle {
  /** The line with this index, in the middle. */
  show(index: number): void;
}

export function LogRows({
  handle,
  log,
  shown,
  closed,
  onFold,
  time,
  searched,
  current,
  linked,
  onLink,
  following,
  onFollowing,
}: {
  readonly handle: RefObject<LogRowsHandle | null>;
  readonly log: RunLog;
  /** Indexes of lines; absent: all. */
  readonly shown: readonly number[] | undefined;
  /** Folds, by index of their title. */
  readonly closed: ReadonlySet<number>;
  readonly onFold: (from: number) => void;
  readonly time: LogTime;
  readonly searched: string;
  /** Index of the match that was gone to. */
  readonly current: number | undefined;
  /** Numbers of lines. */
  readonly linked: { readonly from: number; readonly to: number } | undefined;
  readonly onLink: (index: number, extend: boolean) => void;
  readonly following: boolean;
  readonly onFollowing: (following: boolean) => void;
}): ReactNode {
  const scroller = useRef<HTMLDivElement>(null);
  const count = shown?.length ?? log.lines.length;
  const virtual = useVirtualizer({
    count,
    getScrollElement: () => scroller.current,
    estimateSize: () => rowPx,
    overscan: 20,
  });
  useImperativeHandle(handle, () => ({
    show(index) {
      const row = shown === undefined ? index : shown.indexOf(index);
      virtual.scrollToIndex(Math.max(0, row), { align: 'center' });
    },
  }));
  useEffect(() => {
    if (following && count > 0) virtual.scrollToIndex(count - 1, { align: 'end' });
  }, [following, count, virtual]);

  const groups = useMemo(
    () => new Map(log.groups.map((group) => [group.from, group])),
    // oxlint-disable-next-line react/exhaustive-deps -- groups are only added
    [log, log.groups.length],
  );
  const firstMs = log.lines.find(({ atMs }) => atMs !== undefined)?.atMs;
  const numberWidth = `${Math.max(3, String(log.lines.length).length) + 2}ch`;
  /** Only user actions change this; selected text must not move. */
  const moved = (): void => onFollowing(isAtEnd(scroller.current) && getSelection()?.isCollapsed !== false);

  return (
    <div
      className={classes['scroller']}
      ref={scroller}
      tabIndex={0}
      role="region"
      aria-label="Log"
      onWheel={moved}
      onKeyUp={moved}
      onPointerUp={moved}
    >
      <div className={classes['body']} style={{ height: virtual.getTotalSize() }}>
        {virtual.getVirtualItems().map(({ index: row, start }) => {
          const index = shown === undefined ? row : (shown[row] ?? 0);
          const line = log.lines[index];
          if (line === undefined) return null;
          const number = index + 1;
          const group = groups.get(index);
          const looks = [
            classes['row'],
            linked && number >= linked.from && number <= linked.to ? classes['marked'] : '',
            index === current ? classes['found'] : '',
            line.stream === 'stderr' ? classes['errors'] : '',
          ];
          return (
            <div key={index} className={looks.join(' ')} style={{ transform: `translateY(${start}px)` }}>
              <a
                className={classes['number']}
                href={`#L${number}`}
                aria-label={`Line ${number}`}
                data-shown={number}
                style={{ width: numberWidth }}
                onClick={(event) => {
                  if (event.ctrlKey || event.metaKey) return;
                  event.preventDefault();
                  onLink(index, event.shiftKey);
                }}
              />
              {time === 'off' ? null : (
                <span className={classes['time']} data-shown={logTime(line.atMs, time, firstMs)} />
              )}
              {isGroupEnd(line) ? null : group === undefined ? (
                <LineText line={line} searched={searched} />
              ) : (
                <button
                  type="button"
                  className={classes['fold']}
                  aria-expanded={!closed.has(index)}
                  onClick={() => onFold(index)}
                >
                  {closed.has(index) ? '▸ ' : '▾ '}
                  <bdi>{visibleText(group.title).slice(0, 500)}</bdi>
                  {closed.has(index) ? ` (${(group.to ?? log.lines.length - 1) - index} lines)` : ''}
                </button>
              )}
            </div>
          );
        })}
      </div>
    </div>
  );
}

function isAtEnd(scroller: HTMLDivElement | null): boolean {
  if (scroller === null) return false;
  return scroller.scrollHeight - scroller.clientHeight - scroller.scrollTop <= nearEndPx;
}
