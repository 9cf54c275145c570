// Writes src/api/resources/standard-classes.ts and src/core/ledger/standard-traits.ts: the resource classes and traits that OpenStack defines, from Debian's
// packages python3-os-resource-classes and python3-os-traits. Run it when newer ones are to be known.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';

const program = `
import importlib.metadata as m, json, os_resource_classes as c, os_traits as t
print(json.dumps([m.version("os-resource-classes"), c.STANDARDS, m.version("os-traits"), sorted(t.get_traits())]))`;

const said: unknown = JSON.parse(execFileSync('/usr/bin/python3', ['-c', program], { encoding: 'utf8' }));
const [classesVersion, classes, traitsVersion, traits] = said as [string, string[], string, string[]]; // the program above

write(
  'api/resources/standard-classes.ts',
  'standardClasses',
  classes,
  `resource classes (os-resource-classes ${classesVersion})`,
);
write('core/ledger/standard-traits.ts', 'standardTraits', traits, `traits (os-traits ${traitsVersion})`);

function write(path: string, name: string, words: readonly string[], what: string): void {
  writeFileSync(
    new URL(`../src/${path}`, import.meta.url),
    `// The standard ${what} of OpenStack. Written by scripts/placement-names.ts; never
// edited by hand.

export const ${name}: readonly string[] = \`
${inLines(words)}
\`.trim().split(/\\s+/);
`,
  );
}

function inLines(words: readonly string[]): string {
  const lines = [''];
  for (const word of words) {
    const last = lines.at(-1) ?? '';
    if (last.length + word.length > 115) lines.push(word);
    else lines[lines.length - 1] = last === '' ? word : `${last} ${word}`;
  }
  return lines.join('\n');
}
