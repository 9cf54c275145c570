// The few requests of man(7) that the manual pages consist of.

export type Line = string;

export function page(
  { title, date, version }: { readonly title: string; readonly date: string; readonly version: string },
  lines: readonly Line[],
): string {
  return `${[`.TH ${title} 1 ${date} "${version}" "Berth"`, '.nh', '.ad l', ...lines].join('\n')}\n`;
}

export function section(title: string): Line[] {
  return [`.SH ${title}`];
}

export function subsection(title: string): Line[] {
  return [`.SS "${escaped(title).replaceAll('"', '""')}"`];
}

export function paragraph(text: string): Line[] {
  return ['.PP', ...text.split('\n').map(textLine)];
}

/** A term, with its meaning indented below it. */
export function item(term: string, text: string): Line[] {
  return ['.TP', `\\fB${escaped(term)}\\fR`, ...(text === '' ? ['\\&'] : text.split('\n').map(textLine))];
}

/** Verbatim, line by line. */
export function literal(text: string): Line[] {
  return ['.PP', '.nf', ...text.split('\n').map(textLine), '.fi'];
}

/** A full stop or an apostrophe at the start of a line would be a request. */
function textLine(line: string): Line {
  return line === '' ? '.br' : escaped(line).replace(/^([.'])/, '\\&$1');
}

/** A hyphen must stay one, so that options can be copied from the page. */
function escaped(text: string): string {
  return text.replaceAll('\\', '\\e').replaceAll('-', '\\-').replaceAll('~', '\\(ti').replaceAll('^', '\\(ha');
}
