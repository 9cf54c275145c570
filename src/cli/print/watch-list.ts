// A list that is kept up to date: redrawn in place on a terminal, one line (or one JSON object) per change elsewhere.

import type { Timer } from '../../base/clock.ts';
import type { Kind, ResourceByKind } from '../../api/resources/index.ts';
import type { ListQuery, UserClient } from '../../api/client/user-client.ts';
import type { Cli } from '../cli.ts';
import { Interrupted, usageError } from '../exit-codes.ts';
import { follow } from './follow.ts';
import { type Column, coloursFor, type Format, tableLines, tableWidths, terminalColumns } from './output.ts';
import { visible, visibleInJson } from './terminal.ts';

interface WatchedList<T, K extends Kind> {
  readonly kind: K;
  readonly query: ListQuery;
  readonly format: Format;
  readonly columns: (nowMs: number) => readonly Column<T>[];
  readonly sort: (a: T, b: T) => number;
  readonly empty: string;
}

/** Until Ctrl-C: then throws `Interrupted`. */
export async function watchList<K extends Kind>(
  cli: Cli,
  client: UserClient,
  list: WatchedList<ResourceByKind[K], K>,
): Promise<void> {
  if (list.format === 'yaml') throw usageError('--watch cannot print YAML', 'use -o json: one object per line');
  const changes = follow(cli, client, list.kind, list.query, cli.interruption());
  const redraw = list.format === 'table' && cli.stdout.isTTY === true && cli.environment['TERM'] !== 'dumb';
  const show = redraw ? screen(cli, list) : lines(cli, list);
  try {
    for await (const change of changes) {
      if (change.type === 'lost') show.lost(change.reason);
      else if (change.type === 'sync') show.sync(change.items);
      else if (change.type === 'put') show.put(change.resource);
      else show.gone(change.name, change.project);
    }
    throw new Interrupted();
  } finally {
    show.end();
  }
}

interface Show<T> {
  sync(items: readonly T[]): void;
  put(item: T): void;
  gone(name: string, project: string): void;
  lost(reason: string): void;
  end(): void;
}

type Named = { readonly metadata: { readonly name: string; readonly project: string } };
const keyOf = (name: string, project: string): string => `${project}/${name}`;

function screen<K extends Kind, T extends ResourceByKind[K] & Named>(cli: Cli, list: WatchedList<T, K>): Show<T> {
  const colours = coloursFor(cli.stdout, cli.environment);
  const items = new Map<string, T>();
  let note = '';
  let drawn = 0;
  let timer: Timer | undefined;
  const draw = (): void => {
    timer?.cancel();
    const rows = [...items.values()].sort(list.sort);
    const columns = terminalColumns(cli.stdout);
    const table =
      rows.length === 0 ? [list.empty] : tableLines(list.columns(cli.clock.nowMs()), rows, { colours, columns });
    const room = Math.max(3, (cli.stdout.rows || 24) - 2);
    const shown = table.length > room ? [...table.slice(0, room - 1), `… ${table.length - room + 1} more`] : table;
    if (note !== '') shown.push(colours.yellow(note));
    cli.stdout.write(`${drawn > 0 ? `\u001b[${drawn}A` : ''}\r\u001b[0J${shown.join('\n')}\n`);
    drawn = shown.length;
    timer = cli.clock.setTimer(1_000, draw, { background: true }); // ages grow
  };
  return {
    sync(all) {
      items.clear();
      for (const item of all) items.set(keyOf(item.metadata.name, item.metadata.project), item);
      note = '';
      draw();
    },
    put(item) {
      items.set(keyOf(item.metadata.name, item.metadata.project), item);
      draw();
    },
    gone(name, project) {
      if (items.delete(keyOf(name, project))) draw();
    },
    lost(reason) {
      note = `no answer from the server (${visible(reason)}); trying again`.slice(
        0,
        (terminalColumns(cli.stdout) ?? 80) - 1,
      );
      draw();
    },
    end: () => timer?.cancel(),
  };
}

function lines<K extends Kind, T extends ResourceByKind[K] & Named>(cli: Cli, list: WatchedList<T, K>): Show<T> {
  const seen = new Map<string, string>();
  let widths: number[] | undefined;
  const print = (items: readonly T[]): void => {
    const fresh = items.filter(
      ({ metadata }) => seen.get(keyOf(metadata.name, metadata.project)) !== `${metadata.revision}`,
    );
    for (const { metadata } of fresh) seen.set(keyOf(metadata.name, metadata.project), `${metadata.revision}`);
    if (list.format === 'json') {
      for (const item of fresh) cli.stdout.write(`${visibleInJson(JSON.stringify(item))}\n`);
    } else if (list.format === 'name') {
      for (const { metadata } of fresh) cli.stdout.write(`${visible(metadata.name)}\n`);
    } else {
      const columns = list.columns(cli.clock.nowMs());
      const header = widths === undefined;
      if (header && fresh.length === 0) return;
      const whole = list.format === 'wide';
      widths = tableWidths(columns, fresh, { whole, ...(widths === undefined ? {} : { widths }) });
      cli.stdout.write(`${tableLines(columns, fresh, { widths, header, whole }).join('\n')}\n`);
    }
  };
  return {
    sync: (items) => print([...items].sort(list.sort)),
    put: (item) => print([item]),
    gone(name, project) {
      if (!seen.delete(keyOf(name, project))) return;
      if (list.format === 'json')
        cli.stdout.write(`${visibleInJson(JSON.stringify({ deleted: { name, project } }))}\n`);
      else if (list.format !== 'name') cli.stdout.write(`${visible(name)} is gone\n`);
    },
    lost: (reason) => cli.stderr.write(`berth: no answer from the server (${visible(reason)}); trying again\n`),
    end() {},
  };
}
