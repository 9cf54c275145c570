// The map of hosts, on a canvas: one cell a host, drawn again when something changed. Keys move a cursor, so that it can be used without a
// mouse; what the cursor is on is told as text.

import { useComputedColorScheme } from '@mantine/core';
import { useElementSize } from '@mantine/hooks';
import { type KeyboardEvent, type MouseEvent, type ReactNode, useEffect, useMemo, useRef, useState } from 'react';
import type { Look } from './colours.ts';
import { hostAt, layoutMap, type MapHost } from './layout.ts';

export interface MappedHost extends MapHost {
  readonly look: Look;
  /** For the cursor: `host-1: Ready, 61 % of 64 VCPU`. */
  readonly told: string;
}

export function HostMap({
  hosts,
  onOpen,
}: {
  readonly hosts: readonly MappedHost[];
  readonly onOpen: (name: string) => void;
}): ReactNode {
  const { ref, width } = useElementSize();
  const canvas = useRef<HTMLCanvasElement>(null);
  const [cursor, setCursor] = useState<number>();
  const scheme = useComputedColorScheme('light');
  // Before the width is known, nothing is drawn.
  const layout = useMemo(() => layoutMap(width === 0 ? [] : hosts, Math.max(width, 60)), [hosts, width]);

  useEffect(() => {
    const frame = requestAnimationFrame(() =>
      draw(canvas.current, { layout, hosts, cursor, width, dark: scheme === 'dark' }),
    );
    return () => cancelAnimationFrame(frame);
  }, [layout, hosts, cursor, width, scheme]);

  const under = (event: MouseEvent<HTMLCanvasElement>): number | undefined => {
    const box = event.currentTarget.getBoundingClientRect();
    return hostAt(layout, event.clientX - box.left, event.clientY - box.top);
  };
  const open = (index: number | undefined): void => {
    const host = index === undefined ? undefined : hosts[index];
    if (host) onOpen(host.name);
  };
  const order = useMemo(
    () => layout.cells.toSorted((a, b) => a.y - b.y || a.x - b.x).map(({ index }) => index),
    [layout],
  );
  const onKey = (event: KeyboardEvent): void => {
    const columns = Math.max(1, Math.floor(Math.max(width, 60) / layout.pitch));
    const step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns }[event.key];
    if (event.key === 'Enter') return open(cursor);
    if (step === undefined || order.length === 0) return;
    event.preventDefault();
    const at = cursor === undefined ? -1 : order.indexOf(cursor);
    setCursor(order[Math.max(0, Math.min(order.length - 1, at < 0 ? 0 : at + step))]);
  };
  const told = cursor === undefined ? '' : (hosts[cursor]?.told ?? '');
  return (
    <div ref={ref}>
      <canvas
        ref={canvas}
        role="application"
        aria-label={`Map of ${hosts.length} hosts; the arrow keys move, Enter opens`}
        tabIndex={0}
        style={{ width: '100%', height: layout.height, display: 'block', cursor: 'pointer' }}
        onMouseMove={(event) => setCursor(under(event))}
        onMouseLeave={() => setCursor(undefined)}
        onClick={(event) => open(under(event))}
        onKeyDown={onKey}
      />
      <div aria-live="polite" style={{ minHeight: '1.6em' }}>
        <bdi>{told}</bdi>
      </div>
    </div>
  );
}

interface Drawing {
  readonly layout: ReturnType<typeof layoutMap>;
  readonly hosts: readonly MappedHost[];
  readonly cursor: number | undefined;
  readonly width: number;
  readonly dark: boolean;
}

function draw(canvas: HTMLCanvasElement | null, { layout, hosts, cursor, width, dark }: Drawing): void {
  const context = canvas?.getContext('2d');
  if (!canvas || !context || width === 0) return;
  const ratio = window.devicePixelRatio;
  canvas.width = Math.round(width * ratio);
  canvas.height = Math.round(layout.height * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, layout.height);
  context.fillStyle = dark ? '#c9c9c9' : '#25262b';
  context.font = '13px system-ui, sans-serif';
  for (const { name, count, x, y } of layout.groups) context.fillText(`${name} (${count})`, x, y + 14, width);
  const { size } = layout;
  const byColour = Map.groupBy(layout.cells, ({ index }) => hosts[index]?.look.colour ?? '');
  for (const [colour, cells] of byColour) {
    context.fillStyle = colour;
    context.beginPath();
    for (const { x, y } of cells) context.rect(x, y, size, size);
    context.fill();
  }
  if (size >= 10) {
    context.fillStyle = '#ffffff';
    context.font = `bold ${Math.floor(size * 0.8)}px system-ui, sans-serif`;
    context.textAlign = 'center';
    context.textBaseline = 'middle';
    for (const { index, x, y } of layout.cells) {
      const sign = hosts[index]?.look.sign;
      if (sign) context.fillText(sign, x + size / 2, y + size / 2 + 1);
    }
    context.textAlign = 'start';
    context.textBaseline = 'alphabetic';
  }
  const cell = cursor === undefined ? undefined : layout.cells[cursor];
  if (cell === undefined) return;
  context.strokeStyle = dark ? '#ffffff' : '#000000';
  context.lineWidth = 2;
  context.strokeRect(cell.x - 1, cell.y - 1, size + 2, size + 2);
}
