// A log of any length: only the visible lines are rendered. It can be searched, collapsed by groups and downloaded, and each line has a link.

import { Alert, Stack, Text as Words } from '@mantine/core';
import { type ReactNode, useDeferredValue, useEffect, useMemo, useRef, useState } from 'react';
import { useLocation, useNavigate } from 'react-router';
import { Text } from '../text.tsx';
import type { RunLogState } from './follow-run-log.ts';
import { LogRows, type LogRowsHandle } from './log-rows.tsx';
import { hashOfLines, linesOfHash, linesWith } from './log-search.ts';
import { LogToolbar } from './log-toolbar.tsx';
import type { LogTime } from './log-time.ts';
import { savePlain } from './save-plain.ts';
import { shownLines } from './run-log.ts';

export function LogView({
  state: { log, version, state, fault },
  fileName,
  rawHref,
}: {
  readonly state: RunLogState;
  readonly fileName: string;
  /** Of the log as it is stored. */
  readonly rawHref: string;
}): ReactNode {
  const { hash, search, pathname } = useLocation();
  const navigate = useNavigate();
  const linked = useMemo(() => linesOfHash(hash), [hash]);
  const [closed, setClosed] = useState<ReadonlySet<number>>(new Set());
  const [time, setTime] = useState<LogTime>('off');
  const [wanted, setWanted] = useState('');
  const [at, setAt] = useState(0);
  /** Shows the end first, even of a complete log: the end says how a job ended. */
  const [following, setFollowing] = useState(linked === undefined);
  const searched = useDeferredValue(wanted);
  // oxlint-disable-next-line react/exhaustive-deps -- `version` stands for what is in the log
  const shown = useMemo(() => shownLines(log, closed), [log, closed, version]);
  // oxlint-disable-next-line react/exhaustive-deps -- as above
  const found = useMemo(() => linesWith(log, searched), [log, searched, version]);
  const current = found[at];
  const rows = useRef<LogRowsHandle>(null);

  const goTo = (index: number): void => {
    const group = log.groups.find(({ from, to = log.lines.length - 1 }) => index > from && index <= to);
    setFollowing(false);
    if (group && closed.has(group.from)) toggle(group.from);
    // Opening a group changes the rows: the line is found after the next render.
    requestAnimationFrame(() => rows.current?.show(index));
  };
  const toggle = (from: number): void =>
    setClosed((before) => new Set(before.has(from) ? [...before].filter((each) => each !== from) : [...before, from]));
  const step = (by: number): void => {
    if (found.length === 0) return;
    const next = (at + by + found.length) % found.length;
    setAt(next);
    goTo(found[next] ?? 0);
  };

  // oxlint-disable-next-line react/exhaustive-deps -- once for each text that is searched
  useEffect(() => {
    setAt(0);
    if (found[0] !== undefined) goTo(found[0]);
  }, [searched]);
  /** The link that was followed last: later lines must not scroll the page again. */
  const followed = useRef<string>(undefined);
  useEffect(() => {
    if (linked === undefined || followed.current === hash || log.lines.length < linked.from) return;
    followed.current = hash;
    goTo(linked.from - 1);
  });

  const link = (index: number, extend: boolean): void => {
    const number = index + 1;
    const first = extend && linked ? linked.from : number;
    followed.current = hashOfLines({ from: Math.min(first, number), to: Math.max(first, number) });
    setFollowing(false);
    void navigate({ pathname, search, hash: followed.current }, { replace: true, preventScrollReset: true });
  };

  return (
    <Stack gap="xs">
      <LogToolbar
        wanted={wanted}
        onWanted={setWanted}
        matches={searched === '' ? undefined : { at: found.length === 0 ? 0 : at + 1, count: found.length }}
        onStep={step}
        time={time}
        onTime={setTime}
        folds={log.groups.length === 0 ? undefined : closed.size > 0 ? 'closed' : 'open'}
        onFolds={() => setClosed(new Set(closed.size > 0 ? [] : log.groups.map(({ from }) => from)))}
        following={following}
        onFollowing={setFollowing}
        raw={{ href: rawHref, name: `${fileName}.raw.log` }}
        onSave={() => savePlain(log.lines, `${fileName}.log`)}
      />
      {fault === undefined ? null : (
        <Alert color="yellow" role="status" title="The log cannot be followed now">
          <Text>{fault}</Text>
        </Alert>
      )}
      <Words size="sm" role="status" data-log={state}>
        {log.lines.length > 0
          ? `${log.lines.length} lines${state === 'reading' ? ', and more may come' : ''}`
          : state === 'ended'
            ? 'It has written nothing.'
            : 'Nothing is written yet.'}
      </Words>
      {log.lines.length === 0 ? null : (
        <LogRows
          handle={rows}
          log={log}
          shown={shown}
          closed={closed}
          onFold={toggle}
          time={time}
          searched={searched}
          current={current}
          linked={linked}
          onLink={link}
          following={following}
          onFollowing={setFollowing}
        />
      )}
    </Stack>
  );
}
