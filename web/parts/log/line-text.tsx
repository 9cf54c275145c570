// One line of a log: text with the program's colours, and highlighted matches of the search.

import type { CSSProperties, ReactNode } from 'react';
import { visibleText } from '../text.tsx';
import type { LogStyle } from './ansi-line.ts';
import classes from './log-view.module.css';
import { type LogLine, styledLine } from './run-log.ts';

const ground = '#15181d';
const ink = '#e6e9ee';

export function LineText({ line, searched }: { readonly line: LogLine; readonly searched: string }): ReactNode {
  return (
    <bdi className={classes['text']}>
      {styledLine(line).runs.map(({ text, style }, i) => (
        // oxlint-disable-next-line react/no-array-index-key -- runs have no other name
        <span key={i} style={cssOf(style)}>
          <Found text={visibleText(text)} searched={searched} />
        </span>
      ))}
    </bdi>
  );
}

function Found({ text, searched }: { readonly text: string; readonly searched: string }): ReactNode {
  if (searched === '') return text;
  const parts: ReactNode[] = [];
  const [where, wanted] = [text.toLowerCase(), searched.toLowerCase()];
  let from = 0;
  for (let at = where.indexOf(wanted); at >= 0; at = where.indexOf(wanted, from)) {
    parts.push(text.slice(from, at), <mark key={at}>{text.slice(at, at + wanted.length)}</mark>);
    from = at + wanted.length;
  }
  return [...parts, text.slice(from)];
}

function cssOf({ fg, bg, bold, dim, italic, underline, inverse, strike }: LogStyle): CSSProperties {
  const [front, back] = inverse ? [bg ?? ground, fg ?? ink] : [fg, bg];
  const lines = [underline ? 'underline' : '', strike ? 'line-through' : ''].join(' ').trim();
  return {
    ...(front === undefined ? {} : { color: front }),
    ...(back === undefined ? {} : { backgroundColor: back }),
    ...(bold ? { fontWeight: 700 } : {}),
    ...(dim ? { opacity: 0.75 } : {}),
    ...(italic ? { fontStyle: 'italic' } : {}),
    ...(lines === '' ? {} : { textDecoration: lines }),
  };
}
