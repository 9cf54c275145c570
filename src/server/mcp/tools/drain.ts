// The tool that empties a host: its plan first, then the plan by its hash.

import { Type } from 'typebox';
import { DrainOptions } from '../../../api/plans/host-plan.ts';
import { tool } from '../tool.ts';
import { cleanValue } from '../untrusted.ts';
import { closed, name } from './fields.ts';

const { stopOthers, movesMax, deadlineMs, atDeadline } = DrainOptions.properties;
const drainFields = {
  host: Type.String({ ...name, description: 'name of the host' }),
  stopOthers: Type.Optional(stopOthers),
  movesMax: Type.Optional(movesMax),
  deadlineMs: Type.Optional(deadlineMs),
  atDeadline: Type.Optional(atDeadline),
};

export const planDrainTool = tool({
  name: 'plan_drain',
  title: 'Plan to empty a host',
  description:
    'Says for each instance of a host what a drain does with it, where it would go, what cannot leave and why, and whether the fleet then survives the loss of one host. Nothing is changed. Answers the planHash that "drain" needs.',
  input: Type.Object(drainFields, closed),
  async run({ host, ...options }, { client }) {
    const { plan } = await client.drainHost(host, options);
    return { facts: { planHash: plan?.hash }, untrusted: cleanValue({ plan }) };
  },
});

export const drainTool = tool({
  name: 'drain',
  title: 'Empty a host',
  description:
    'Carries out the plan that "plan_drain" answered, with the same arguments. Refused when the plan is another by now: the refusal says what has changed.',
  input: Type.Object({ ...drainFields, planHash: Type.String({ minLength: 8, maxLength: 64 }) }, closed),
  writes: true,
  destructive: true,
  async run({ host, planHash, ...options }, { client }) {
    const { drain } = await client.drainHost(host, { ...options, apply: planHash });
    return { facts: { phase: drain?.phase }, untrusted: cleanValue({ drain }) };
  },
});
