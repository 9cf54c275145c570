// Microversions of the Placement API, 1.0 to 1.39, and what is the same from one of them on. A version is its minor number.

export const versionMin = 0;
export const versionMax = 39;

/** From which version each form counts, in rising order. */
export type ByVersion<T> = readonly (readonly [since: number, form: T])[];

/** The form that counts at a version; undefined: there is none yet. */
export function formAt<T>(forms: ByVersion<T>, version: number): T | undefined {
  let found: T | undefined;
  for (const [since, form] of forms) if (since <= version) found = form;
  return found;
}

/** Since when something is so. */
export const since = {
  lastModified: 15,
  errorCodes: 23,
} as const;

export type AskedVersion = { readonly version: number } | { readonly status: 400 | 406; readonly why: string };

/** Reads the header `OpenStack-API-Version`, whose values for other services do not count. */
export function askedVersion(header: string | undefined): AskedVersion {
  const asked = valueFor(header) ?? `1.${versionMin}`;
  if (asked === 'latest') return { version: versionMax };
  const parts = /^\s*([+-]?\d+)\s*\.\s*([+-]?\d+)\s*$/.exec(asked);
  if (!parts) return { status: 400, why: `Invalid microversion: invalid version string: ${asked}` };
  const [major, minor] = [Number(parts[1]), Number(parts[2])];
  if (major === 1 && minor >= versionMin && minor <= versionMax) return { version: minor };
  return { status: 406, why: `Invalid microversion: Unacceptable version header: ${asked}` };
}

/** The last value counts. */
function valueFor(header = ''): string | undefined {
  for (const each of header.split(',').reverse()) {
    const [, service, version] = /^\s*(\S+)\s+(.*?)\s*$/.exec(each) ?? [];
    if (service?.toLowerCase() === 'placement') return version;
  }
  return undefined;
}
