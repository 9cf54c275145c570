// What an `Accept` header asks for. Answers are JSON; a refusal also comes as a page or as plain text, for those who ask for that.

export type RefusalForm = 'json' | 'html' | 'text';

/** As in the original: the form preferred, the page on a tie, and plain text for those who accept neither of the others. */
export function refusalFormOf(accept: string | undefined): RefusalForm {
  if (asksForNothing(accept) || accept?.trim() === '*/*') return 'json';
  const [json, html] = [qualityOf(accept, 'application/json'), qualityOf(accept, 'text/html')];
  if (html > 0 && html >= json) return 'html';
  return json > 0 ? 'json' : 'text';
}

export function acceptsJson(accept: string | undefined): boolean {
  return asksForNothing(accept) || qualityOf(accept, 'application/json') > 0;
}

function asksForNothing(accept: string | undefined): accept is undefined {
  return accept === undefined || accept.trim() === '';
}

/** From 0, not acceptable, to 1. The most exact range that covers the type counts. */
function qualityOf(accept: string, type: string): number {
  const [family = ''] = type.split('/');
  const exactness = ['*/*', `${family}/*`, type];
  let found = { exact: -1, quality: 0 };
  for (const each of accept.split(',')) {
    const [range = '', ...options] = each.split(';').map((part) => part.trim().toLowerCase());
    const exact = exactness.indexOf(range);
    if (exact <= found.exact) continue;
    const quality = options.find((option) => option.startsWith('q='))?.slice(2);
    found = { exact, quality: Number(quality ?? 1) || 0 };
  }
  return found.quality;
}
