// The tool that reads the end of a console log or of a job's output.

import { Type } from 'typebox';
import { type ToolContext, tool } from '../tool.ts';
import { cleanText, lastLines } from '../untrusted.ts';
import { closed, name, project } from './fields.ts';

/** What is read of a log: its end. */
const bytesKept = 262_144;

export const logsTool = tool({
  name: 'logs',
  title: 'Read a log',
  description: 'Reads the last lines of the console of an instance, or of the output of a job.',
  input: Type.Object(
    {
      kind: Type.Enum(['instance', 'job']),
      name,
      project,
      attempt: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'of a job; default: the last' })),
      lines: Type.Optional(Type.Integer({ minimum: 1, maximum: 1_000, description: 'default 100' })),
    },
    closed,
  ),
  async run(
    { kind, name: called, project: asked, attempt, lines = 100 },
    { client, project: own, signal }: ToolContext,
  ) {
    const of = { project: asked ?? own };
    const pieces =
      kind === 'instance'
        ? client.log(called, of, signal)
        : client.jobLog(called, { ...of, ...(attempt === undefined ? {} : { attempt }) }, signal);
    const text = cleanText(await endOf(pieces), bytesKept);
    const shown = lastLines(text, lines);
    return { facts: { lines: shown === '' ? 0 : shown.split('\n').length }, untrusted: shown };
  },
});

async function endOf(pieces: AsyncIterable<Uint8Array>): Promise<string> {
  let kept = Buffer.alloc(0);
  for await (const piece of pieces) kept = Buffer.concat([kept, piece]).subarray(-bytesKept);
  return kept.toString();
}
