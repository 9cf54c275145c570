// What a replay looks like over time: hosts in use, and how many were needed at least. As SVG, and small in letters.

import type { Replayed, Stretch } from './replay.ts';

const bars = '▁▂▃▄▅▆▇█';

/** One line of `width` letters; `top` is as high as a letter goes. */
export function sparkline(values: readonly number[], width: number, top: number): string {
  const count = Math.min(width, values.length);
  let line = '';
  for (let i = 0; i < count; i++) {
    const part = values.slice(Math.floor((i * values.length) / count), Math.floor(((i + 1) * values.length) / count));
    const mean = part.reduce((sum, value) => sum + value, 0) / Math.max(1, part.length);
    line += bars[Math.min(bars.length - 1, Math.floor((mean / Math.max(top, 1e-9)) * bars.length))];
  }
  return line;
}

const size = { width: 960, height: 420, left: 64, right: 24, top: 48, bottom: 48 } as const;
const colours = ['#1f77b4', '#d62728', '#2ca02c', '#9467bd', '#ff7f0e', '#8c564b'];
const neededColour = '#999999';
const ticks = 5;

/** A picture of one or several replays of one trace. Its text is escaped; it needs nothing from elsewhere. */
export function plotSvg(title: string, replays: readonly Replayed[]): string {
  const [first] = replays;
  const endS = Math.max(1, ...replays.map(({ spanS }) => spanS));
  const peak = Math.max(
    1,
    ...replays.flatMap(({ stretches }) =>
      stretches.flatMap(({ hostsInUse, hostsNeeded }) => [hostsInUse, hostsNeeded]),
    ),
  );
  const x = (atS: number): number => size.left + (atS / endS) * (size.width - size.left - size.right);
  const y = (hosts: number): number =>
    size.height - size.bottom - (hosts / peak) * (size.height - size.top - size.bottom);
  const line = (stretches: readonly Stretch[], valueOf: (stretch: Stretch) => number, style: string): string =>
    `<polyline fill="none" ${style} points="${stretches.map((each) => `${rounded(x(each.atS))},${rounded(y(valueOf(each)))}`).join(' ')}"/>`;
  const labels = [
    ...replays.map(({ profile, moves }) => (moves.made > 0 ? `${profile}, with moves` : profile)),
    'needed at least',
  ];
  const perHour = endS > 4 * 86_400 ? 86_400 : 3_600;
  const parts = [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${size.width} ${size.height}" font-family="sans-serif" font-size="12">`,
    `<rect width="${size.width}" height="${size.height}" fill="white"/>`,
    `<text x="${size.left}" y="20" font-size="14">${escaped(title)}</text>`,
    ...labels.map((label, i) => {
      const colour = i < replays.length ? (colours[i % colours.length] ?? '') : neededColour;
      return `<text x="${size.left + i * 220}" y="38" fill="${colour}">${escaped(label)}</text>`;
    }),
    ...Array.from({ length: ticks + 1 }, (_, i) => {
      const hosts = (peak * i) / ticks;
      return `<line x1="${size.left}" x2="${size.width - size.right}" y1="${rounded(y(hosts))}" y2="${rounded(y(hosts))}" stroke="#eeeeee"/><text x="${size.left - 8}" y="${rounded(y(hosts) + 4)}" text-anchor="end">${peak >= 10 ? Math.round(hosts) : rounded(hosts)}</text>`;
    }),
    ...Array.from({ length: ticks + 1 }, (_, i) => {
      const atS = (endS * i) / ticks;
      return `<text x="${rounded(x(atS))}" y="${size.height - size.bottom + 18}" text-anchor="middle">${rounded(atS / perHour)}</text>`;
    }),
    `<text x="${(size.left + size.width - size.right) / 2}" y="${size.height - 10}" text-anchor="middle">${perHour === 3_600 ? 'hours' : 'days'}</text>`,
    `<text x="16" y="${size.height / 2}" transform="rotate(-90 16 ${size.height / 2})" text-anchor="middle">hosts</text>`,
    ...(first
      ? [line(first.stretches, ({ hostsNeeded }) => hostsNeeded, `stroke="${neededColour}" stroke-dasharray="4 3"`)]
      : []),
    ...replays.map(({ stretches }, i) =>
      line(stretches, ({ hostsInUse }) => hostsInUse, `stroke="${colours[i % colours.length]}" stroke-width="1.5"`),
    ),
    '</svg>',
  ];
  return `${parts.join('\n')}\n`;
}

function rounded(value: number): number {
  return Math.round(value * 10) / 10;
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;').replaceAll('"', '&quot;');
}
