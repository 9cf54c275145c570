// Which Node runs Berth: the running one, the one that npm brought, or none, and then what to do about it. Read by any Node from 18 on, so
// its syntax is no newer; it imports nothing.

/**
 * The first version of each line without the faults in Node's HTTP/2 client by which a hostile host could stop the control plane:
 * CVE-2026-48619, CVE-2026-56846 and CVE-2026-56848, all fixed by July 2026. Debian 12 has 18, and Debian 13 has 20.
 */
const least = [
  [22, 23, 2],
  [24, 18, 1],
  [26, 5, 1],
];
const best = 24;
/** What npm brings for these: packages of this name. */
const broughtFor = ['linux-x64', 'linux-arm64'];

/**
 * @param {{ version: string, platform: string, brought: string | undefined, published: boolean }} here `version` of the running Node;
 *   `platform` as `linux-x64`; `brought`: path of the Node that npm brought, if it did; `published`: in the package, not in a checkout.
 * @returns {{ running: true } | { node: string } | { refusal: string }}
 */
export function nodeFor({ version, platform, brought, published }) {
  if (isNewEnough(version)) return { running: true };
  if (brought !== undefined) return { node: brought };
  const download = `install Node ${best} from https://nodejs.org/en/download`;
  const remedy = !published
    ? `run \`npm ci\` in the checkout, which brings Node ${best}`
    : broughtFor.includes(platform)
      ? `install it again, so that npm brings Node ${best} with it (${broughtPackage(platform)}); or ${download}`
      : download;
  return { refusal: `berth needs Node ${leastText}, and this is ${version}: ${remedy}` };
}

/** @param {string} version `24.18.1` */
export function isNewEnough(version) {
  const [major = 0, minor = 0, patch = 0] = version.split('.').map(Number);
  const line = least.find(([of]) => of === major);
  if (line === undefined) return major > least[least.length - 1][0];
  return minor > line[1] || (minor === line[1] && patch >= line[2]);
}

/** `22.23.2, 24.18.1, 26.5.1 or newer` */
export const leastText = `${least.map((line) => line.join('.')).join(', ')} or newer`;

/** The package that brings it. */
export function broughtPackage(platform) {
  return `node-${platform}`;
}
