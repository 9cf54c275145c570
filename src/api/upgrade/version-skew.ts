// Which versions of Berth work together: a server of version x.n with agents of x.n, x.n−1 and x.n−2, and with newer ones of x for the
// time of a way back. Patch versions do not count. Pure.

/** How many minor versions an agent may be behind its server. */
export const agentMinorsBehindMax = 2;
/** Servers on one store may be this many minor versions apart, while they are upgraded. */
export const serverMinorsApartMax = 1;

/** `unknown`: one of the two is no version, such as that of a test or of a build of a developer. */
export type Skew = 'works' | 'tooOld' | 'tooNew' | 'unknown';

/** `newer`: it works, but servers are to be upgraded before agents. */
export function agentSkew({ agent, server }: { readonly agent: string; readonly server: string }): Skew | 'newer' {
  const behind = minorsBetween(agent, server);
  if (behind === undefined) return 'unknown';
  if (behind < 0) return Number.isFinite(behind) ? 'newer' : 'tooNew';
  return behind <= agentMinorsBehindMax ? 'works' : 'tooOld';
}

/** Whether a server works beside one of the `target` version on the same store. */
export function serverSkew({ server, target }: { readonly server: string; readonly target: string }): Skew {
  const behind = minorsBetween(server, target);
  if (behind === undefined) return 'unknown';
  if (behind < -serverMinorsApartMax) return 'tooNew';
  return behind <= serverMinorsApartMax ? 'works' : 'tooOld';
}

/** `0.4` of 0.6.1: the oldest agents that a server of this version works with. */
export function oldestAgentOf(server: string): string {
  const at = minorOf(server);
  return at ? `${at.major}.${Math.max(0, at.minor - agentMinorsBehindMax)}` : server;
}

/** How many minor versions `from` is behind `to`; negative: it is ahead. Another major version is further than any minor one. */
function minorsBetween(from: string, to: string): number | undefined {
  const [a, b] = [minorOf(from), minorOf(to)];
  if (!a || !b) return undefined;
  return a.major === b.major ? b.minor - a.minor : (b.major - a.major) * Number.POSITIVE_INFINITY;
}

function minorOf(version: string): { readonly major: number; readonly minor: number } | undefined {
  const [, major, minor] = /^(\d{1,9})\.(\d{1,9})\.\d+/.exec(version) ?? [];
  return major === undefined || minor === undefined ? undefined : { major: Number(major), minor: Number(minor) };
}
