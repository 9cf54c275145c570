// Writes docs/configuration.md from the schemas of server and agent; src/commands/config/reference-page.test.ts compares.

import { writeFileSync } from 'node:fs';
import { configurationPage } from '../src/commands/config/reference-page.ts';

writeFileSync(new URL('../docs/configuration.md', import.meta.url), configurationPage());
