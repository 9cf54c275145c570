// The words of a command line: parted by spaces, held together by quotes, as a shell reads them. Nothing else of a shell is known.

export function wordsOf(text: string): string[] {
  const words: string[] = [];
  for (const [word] of text.matchAll(/(?:[^\s'"]+|'[^']*'|"[^"]*")+/g))
    words.push(word.replace(/'([^']*)'|"([^"]*)"/g, (_, single?: string, double?: string) => single ?? double ?? ''));
  return words;
}
