// The language of programs in fake guests: a few lines that a shell understands in the same way, so that one script serves fake and real guests.
//
//   echo TEXT, echo TEXT >&2   writes a line
//   sleep SECONDS              of the guest's running time
//   exit N, true, false        as in a shell; any other word is not found: status 127, and it goes on
//   hang                       never ends by itself, and ignores SIGTERM
//   fail-boot                  anywhere: the guest never gets so far as to run the program

export type ProgramStep =
  | { readonly do: 'write'; readonly stream: 'stdout' | 'stderr'; readonly text: string; readonly status: number }
  | { readonly do: 'sleep'; readonly durationMs: number }
  | { readonly do: 'status'; readonly code: number }
  | { readonly do: 'exit'; readonly code: number | undefined }
  | { readonly do: 'hang' }
  | { readonly do: 'fail-boot' };

export function parseProgram(text: string): readonly ProgramStep[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '' && !line.startsWith('#'))
    .map(stepOf);
}

function stepOf(line: string): ProgramStep {
  const word = line.split(/\s/, 1)[0] ?? '';
  const rest = line.slice(word.length).trim();
  switch (word) {
    case 'echo': {
      const toStderr = /\s*(?:1?>&2)$/.exec(rest);
      const text = unquoted(toStderr === null ? rest : rest.slice(0, toStderr.index));
      return { do: 'write', stream: toStderr === null ? 'stdout' : 'stderr', text: `${text}\n`, status: 0 };
    }
    case 'sleep':
      return { do: 'sleep', durationMs: Math.max(0, Number(rest) || 0) * 1000 };
    case 'exit':
      return { do: 'exit', code: rest === '' ? undefined : (Number(rest) || 0) & 0xff };
    case 'true':
    case ':':
      return { do: 'status', code: 0 };
    case 'false':
      return { do: 'status', code: 1 };
    case 'hang':
    case 'fail-boot':
      return { do: word };
    default:
      return { do: 'write', stream: 'stderr', text: `${word}: not found\n`, status: 127 };
  }
}

const unquoted = (text: string): string => /^(["'])(.*)\1$/s.exec(text)?.[2] ?? text;
