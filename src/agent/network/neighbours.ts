// Which addresses this host has heard of at which MAC address: what `ip` says of its neighbours, read. Pure.

import { isIPv4 } from 'node:net';
import { Type } from 'typebox';
import { Check } from 'typebox/value';

const Neighbours = Type.Array(
  Type.Object({
    dst: Type.String(),
    lladdr: Type.Optional(Type.String()),
    state: Type.Optional(Type.Array(Type.String())),
  }),
);

/** From `ip -json -4 neighbour show`: the address that is surest to be there, of equals `current`. Throws when that is not what was said. */
export function neighbourAt(said: string, macAddress: string, current?: string): string | undefined {
  const value: unknown = said === '' ? [] : JSON.parse(said);
  if (!Check(Neighbours, value)) throw new Error('"ip -json neighbour show" says something else than neighbours');
  return value
    .filter(({ dst, lladdr }) => lladdr?.toLowerCase() === macAddress && isIPv4(dst) && !dst.startsWith('169.254.'))
    .sort((a, b) => sureness(b.state) - sureness(a.state) || Number(b.dst === current) - Number(a.dst === current))[0]
    ?.dst;
}

/** `NUD_*` of the kernel: an address that was left stays in the table for a while, as STALE. */
function sureness(states: readonly string[] = []): number {
  if (states.includes('REACHABLE') || states.includes('PERMANENT')) return 2;
  return states.includes('DELAY') || states.includes('PROBE') ? 1 : 0;
}
