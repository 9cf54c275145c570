// Which versions of git are safe enough to read what strangers made. Pure.

/** `http.curloptResolve` came with it: before, the address that was checked is not the one that is connected to. */
const needed = [2, 37] as const;
/** The first release of each series without the known faults of fetch, credentials and archive (CVE-2025-48384, CVE-2025-48385 and earlier). */
const fixed: readonly (readonly [number, number, number])[] = [
  [2, 39, 5], // with the patches of Debian 12
  [2, 43, 7],
  [2, 44, 4],
  [2, 45, 4],
  [2, 46, 4],
  [2, 47, 3],
  [2, 48, 2],
  [2, 49, 1],
  [2, 50, 1],
];

type GitVersion =
  | { readonly usable: false; readonly why: string }
  | { readonly usable: true; readonly advice: string | undefined };

/** `text` as `git --version` writes it. */
export function judgeGitVersion(text: string): GitVersion {
  const [, major, minor, patch] = /^git version (\d+)\.(\d+)(?:\.(\d+))?/.exec(text.trim()) ?? [];
  const [a, b, c] = [Number(major ?? Number.NaN), Number(minor ?? 0), Number(patch ?? 0)];
  if (!Number.isFinite(a)) return { usable: false, why: 'its version cannot be read' };
  if (a < needed[0] || (a === needed[0] && b < needed[1]))
    return { usable: false, why: `git ${a}.${b} is too old; ${needed.join('.')} or newer is needed` };
  const last = fixed.at(-1);
  const series = fixed.find(([x, y]) => x === a && y === b);
  const newer = last !== undefined && (a > last[0] || (a === last[0] && b > last[1]));
  if (newer || (series !== undefined && c >= series[2])) return { usable: true, advice: undefined };
  const advice = `git ${a}.${b}.${c} has known security faults unless your distribution patched it; update git`;
  return { usable: true, advice };
}
