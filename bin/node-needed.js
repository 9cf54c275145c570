// Which Node runs Berth: the running one, the one that npm brought, or none, and then what to do about it. Read by any Node from 18 on, so
// its syntax is no newer; it imports nothing.

/** Of Debian 12 it is 18, of Debian 13 it is 20. */
const least = { major: 22, minor: 19, text: '22.19' };
const best = 24;
/** What npm brings for these: packages of this name. */
const broughtFor = ['linux-x64', 'linux-arm64'];

/**
 * @param {{ version: string, platform: string, brought: string | undefined, published: boolean }} here `version` of the running Node;
 *   `platform` as `linux-x64`; `brought`: path of the Node that npm brought, if it did; `published`: in the package, not in a checkout.
 * @returns {{ running: true } | { node: string } | { refusal: string }}
 */
export function nodeFor({ version, platform, brought, published }) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  if (major > least.major || (major === least.major && minor >= least.minor)) return { running: true };
  if (brought !== undefined) return { node: brought };
  const download = `install Node ${best} from https://nodejs.org/en/download`;
  const remedy = !published
    ? `run \`npm ci\` in the checkout, which brings Node ${best}`
    : broughtFor.includes(platform)
      ? `install it again, so that npm brings Node ${best} with it (${broughtPackage(platform)}); or ${download}`
      : download;
  return { refusal: `berth needs Node ${least.text} or newer, and this is ${version}: ${remedy}` };
}

/** The package that brings it. */
export function broughtPackage(platform) {
  return `node-${platform}`;
}
