// Loaded before all else (`node --import plant-hook.ts?bug=NAME`): puts one planted bug into the module it belongs to, when that is
// loaded. So production code holds no hook for any of them.

import { registerHooks } from 'node:module';
import { plantedIn } from './plant.ts';
import { forgetfulTables } from './forgetful-tables.ts';
import { plantedBugs } from './planted-bugs.ts';

const name = new URL(import.meta.url).searchParams.get('bug');
const bug = [...plantedBugs, ...forgetfulTables].find((each) => each.name === name);
if (!bug) throw new Error(`there is no planted bug "${name}"`);
const place = new URL(`../../${bug.file}`, import.meta.url).href;

registerHooks({
  load(url, context, nextLoad) {
    const loaded = nextLoad(url, context);
    if (url !== place) return loaded;
    const { source } = loaded;
    const text = typeof source === 'string' ? source : new TextDecoder().decode(source ?? new Uint8Array());
    return { ...loaded, source: plantedIn(text, bug) };
  },
});
