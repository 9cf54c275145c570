// The three tiers of tests, by the end of a file's name. `npm test` runs the first two; vitest.config.ts makes a project of each.

/** Each tier: its name, which is that of its vitest project, and what is in it. */
export const tiers = [
  { name: 'quick', ending: '.test.ts', holds: 'no guests, daemons or other processes' },
  { name: 'real', ending: '.real.test.ts', holds: 'every engine and every store once' },
  { name: 'long', ending: '.long.test.ts', holds: 'every variant, every crash step, Debian images, many seeds' },
];

/** The globs of a tier's files, and the globs of those of other tiers that end in the same way. */
export function filesOf(tier) {
  const { ending } = tiers.find(({ name }) => name === tier);
  const others = tiers.filter((other) => other.ending !== ending && other.ending.endsWith(ending));
  return {
    include: [`src/**/*${ending}`, `test/**/*${ending}`, `web/**/*${ending}`],
    exclude: ['**/node_modules/**', 'web/dist/**', ...others.map((other) => `**/*${other.ending}`)],
  };
}
