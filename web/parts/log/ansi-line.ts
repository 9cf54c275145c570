// One line of a log as styled runs of text. Interprets colours and cursor movements within the line, drops all other escape sequences, and
// creates no markup. Pure.

export interface LogStyle {
  /** A CSS colour. */
  readonly fg?: string;
  readonly bg?: string;
  readonly bold?: boolean;
  readonly dim?: boolean;
  readonly italic?: boolean;
  readonly underline?: boolean;
  readonly inverse?: boolean;
  readonly strike?: boolean;
}

export interface LogRun {
  readonly text: string;
  readonly style: LogStyle;
}

export interface AnsiLine {
  readonly runs: readonly LogRun[];
  /** The style at the beginning of the next line. */
  readonly end: LogStyle;
}

export const plainStyle: LogStyle = {};

/** Maximum columns of a line; the rest is not shown. */
export const columnsMax = 16_384;
/** An unfinished escape sequence ends after this many characters. */
const commandCharsMax = 4_096;
const tabColumns = 8;

// C0 and DEL: lines without them need no parser.
// oxlint-disable-next-line no-control-regex -- it looks for them
const controls = /[\u0000-\u001f\u007f]/;

export function ansiLine(text: string, start: LogStyle): AnsiLine {
  if (!controls.test(text)) {
    const shown = text.length > columnsMax ? text.slice(0, columnsMax) : text;
    return { runs: shown === '' ? [] : [{ text: shown, style: start }], end: start };
  }
  return new LineParser(start).parse(text);
}

class LineParser {
  readonly #chars: string[] = [];
  readonly #styles: LogStyle[] = [];
  #column = 0;
  #style: LogStyle;

  constructor(start: LogStyle) {
    this.#style = start;
  }

  parse(text: string): AnsiLine {
    for (let at = 0; at < text.length; ) {
      const char = String.fromCodePoint(text.codePointAt(at) ?? 0);
      at += char.length;
      if (char === '\u001b') at = this.#escape(text, at);
      else if (char === '\r') this.#column = 0;
      else if (char === '\b') this.#column = Math.max(0, this.#column - 1);
      else if (char === '\t')
        do this.#put(' ');
        while (this.#column % tabColumns !== 0 && this.#column < columnsMax);
      else this.#put(char);
    }
    return { runs: this.#runs(), end: this.#style };
  }

  #put(char: string): void {
    if (this.#column >= columnsMax) return;
    while (this.#chars.length < this.#column) {
      this.#chars.push(' ');
      this.#styles.push(plainStyle);
    }
    this.#chars[this.#column] = char;
    this.#styles[this.#column] = this.#style;
    this.#column += 1;
  }

  /** `at` is the position after the escape character. Returns the position after the sequence. */
  #escape(text: string, at: number): number {
    const kind = text.charAt(at);
    if (kind === '[') return this.#control(text, at + 1);
    if (']P_^X'.includes(kind) && kind !== '') return endOfString(text, at + 1);
    // A choice of a character set has one more character.
    return at + ('()*+-./#%'.includes(kind) && kind !== '' ? 2 : 1);
  }

  /** `ESC [ parameters letter`. */
  #control(text: string, from: number): number {
    let at = from;
    while (at < text.length && at - from < commandCharsMax && /[\u0020-\u003f]/.test(text.charAt(at))) at += 1;
    const parameters = text.slice(from, at);
    const amount = Math.max(1, Number.parseInt(parameters, 10) || 1);
    switch (text.charAt(at)) {
      case 'm':
        if (/^[\d;:]*$/.test(parameters)) this.#style = styleAfter(this.#style, parameters);
        break;
      case 'K':
        this.#erase(parameters);
        break;
      case 'C':
        this.#column = Math.min(columnsMax, this.#column + amount);
        break;
      case 'D':
        this.#column = Math.max(0, this.#column - amount);
        break;
      case 'G':
        this.#column = Math.min(columnsMax, amount - 1);
        break;
    }
    return at + 1;
  }

  #erase(which: string): void {
    const upTo = Math.min(this.#chars.length, this.#column);
    if (which === '1') for (let i = 0; i <= upTo && i < this.#chars.length; i += 1) this.#chars[i] = ' ';
    else this.#chars.length = this.#styles.length = which === '2' ? 0 : upTo;
  }

  #runs(): LogRun[] {
    const runs: LogRun[] = [];
    for (let from = 0; from < this.#chars.length; ) {
      let to = from + 1;
      while (to < this.#chars.length && this.#styles[to] === this.#styles[from]) to += 1;
      runs.push({ text: this.#chars.slice(from, to).join(''), style: this.#styles[from] ?? plainStyle });
      from = to;
    }
    return runs;
  }
}

/** Behind BEL or `ESC \`, or where an unfinished one ends. */
function endOfString(text: string, from: number): number {
  const limit = Math.min(text.length, from + commandCharsMax);
  for (let at = from; at < limit; at += 1) {
    if (text[at] === '\u0007') return at + 1;
    if (text[at] === '\u001b') return text[at + 1] === '\\' ? at + 2 : at;
  }
  return limit;
}

/** Every colour, even black, is readable on the dark background of the log. */
const colours = ['#8b929e', '#ff7b72', '#5fd47a', '#e3b341', '#79b8ff', '#d2a8ff', '#56d4dd', '#d0d7de'] as const;
const brightColours = ['#a5adb8', '#ffa198', '#7ee787', '#f2cc60', '#a5d6ff', '#e2c5ff', '#8ce9f0', '#ffffff'] as const;
const grounds = ['#000000', '#8e1519', '#116329', '#6b4c00', '#0a4a9e', '#5a2a99', '#0b5a63', '#4a515b'] as const;

function styleAfter(style: LogStyle, parameters: string): LogStyle {
  const codes = parameters.split(/[;:]/).map((code) => Number(code || '0'));
  let next: { -readonly [K in keyof LogStyle]: LogStyle[K] } = { ...style };
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i] ?? 0;
    if (code === 0) next = {};
    else if (code === 1) next.bold = true;
    else if (code === 2) next.dim = true;
    else if (code === 3) next.italic = true;
    else if (code === 4) next.underline = true;
    else if (code === 7) next.inverse = true;
    else if (code === 9) next.strike = true;
    else if (code === 22) next = withoutWeight(next);
    else if (code === 23) delete next.italic;
    else if (code === 24) delete next.underline;
    else if (code === 27) delete next.inverse;
    else if (code === 29) delete next.strike;
    else if (code >= 30 && code <= 37) next.fg = colours[code - 30] ?? '';
    else if (code === 39) delete next.fg;
    else if (code >= 40 && code <= 47) next.bg = grounds[code - 40] ?? '';
    else if (code === 49) delete next.bg;
    else if (code >= 90 && code <= 97) next.fg = brightColours[code - 90] ?? '';
    else if (code >= 100 && code <= 107) next.bg = grounds[code - 100] ?? '';
    else if (code === 38 || code === 48) {
      const { colour, used } = extended(codes.slice(i + 1), code === 48);
      i += used;
      if (colour !== undefined) next[code === 38 ? 'fg' : 'bg'] = colour;
    }
  }
  return next;
}

function withoutWeight({ bold: _bold, dim: _dim, ...rest }: LogStyle): LogStyle {
  return rest;
}

/** `5;n` of a palette of 256, or `2;r;g;b`. */
function extended(
  codes: readonly number[],
  ground: boolean,
): { readonly colour: string | undefined; readonly used: number } {
  const [kind, ...rest] = codes;
  if (kind === 5) return { colour: paletteColour(rest[0] ?? -1, ground), used: 2 };
  if (kind !== 2) return { colour: undefined, used: codes.length };
  const parts = rest.slice(0, 3);
  return { colour: parts.length === 3 && parts.every(isByte) ? hexOf(parts) : undefined, used: 4 };
}

function paletteColour(n: number, ground: boolean): string | undefined {
  if (!isByte(n)) return undefined;
  if (n < 8) return (ground ? grounds : colours)[n];
  if (n < 16) return (ground ? grounds : brightColours)[n - 8];
  if (n >= 232) return hexOf([n, n, n].map((grey) => 8 + 10 * (grey - 232)));
  const steps = [0, 95, 135, 175, 215, 255];
  const cube = n - 16;
  return hexOf([Math.floor(cube / 36), Math.floor(cube / 6) % 6, cube % 6].map((step) => steps[step] ?? 0));
}

function isByte(value: number): boolean {
  return Number.isInteger(value) && value >= 0 && value <= 255;
}

function hexOf(parts: readonly number[]): string {
  return `#${parts.map((part) => part.toString(16).padStart(2, '0')).join('')}`;
}
