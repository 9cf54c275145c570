// Makes external text safe to show. A name, a message or a guest's console must not move the cursor, change the title
// or hide text.

/** Controls (C0, DEL, C1), line separators, and what reorders text or takes no room: they hide what is really there. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it looks for
const dangerous = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** `text` with every dangerous character escaped: `\x1b`. Characters of `allowed` stay. */
export function visible(text: string, allowed = ''): string {
  return text.replace(dangerous, (character) => (allowed.includes(character) ? character : spelled(character)));
}

/** As in JSON, so that escaped text inside a JSON string stays valid JSON. */
export function visibleInJson(text: string): string {
  return text.replace(dangerous, (c) => (c === '\n' ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`));
}

function spelled(character: string): string {
  const code = character.charCodeAt(0);
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
}

const escape = '\u001b';
/** "Select graphic rendition": colours and weight. */
const sgr = /^\u001b\[[0-9;:]*m/;
const beginningOfSgr = /^\u001b(\[[0-9;:]{0,32})?$/;

/**
 * Filters a guest's console for a terminal, piece by piece: lines, tabs and colours stay, other control sequences are
 * escaped. `end` returns what was held back and resets the colours.
 */
export function consoleFilter(): { push(bytes: Uint8Array): string; end(): string } {
  const decoder = new TextDecoder();
  let held = '';
  let coloured = false;

  const filter = (text: string): string => {
    let shown = '';
    for (let at = 0; at < text.length; ) {
      const next = nextDangerous(text, at);
      shown += text.slice(at, next);
      if (next === text.length) break;
      const rest = text.slice(next, next + 64);
      const colour = sgr.exec(rest)?.[0];
      if (colour !== undefined) {
        coloured = true;
        shown += colour;
        at = next + colour.length;
      } else if (text[next] === escape && next + rest.length === text.length && beginningOfSgr.test(rest)) {
        held = rest; // the piece may end inside a colour sequence
        return shown;
      } else if (text[next] === '\r') {
        // A serial console ends lines with CR LF, or CR CR LF. A lone CR would let a guest overwrite its line.
        const run = /^\r+\n?/.exec(rest)?.[0] ?? '\r';
        if (!run.endsWith('\n') && next + run.length === text.length) {
          held = run;
          return shown;
        }
        shown += '\n';
        at = next + run.length;
      } else {
        shown += spelled(text[next] ?? '');
        at = next + 1;
      }
    }
    return shown;
  };

  return {
    push(bytes) {
      const text = held + decoder.decode(bytes, { stream: true });
      held = '';
      return filter(text);
    },
    end() {
      const rest = visible(held.replace(/\r+$/, '') + decoder.decode());
      held = '';
      return rest + (coloured ? `${escape}[0m` : '');
    },
  };
}

function nextDangerous(text: string, from: number): number {
  dangerous.lastIndex = from;
  for (;;) {
    const match = dangerous.exec(text);
    if (!match) return text.length;
    if (match[0] !== '\n' && match[0] !== '\t') return match.index;
  }
}
