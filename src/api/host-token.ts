// The response of `POST /v1/hosts/{host}/token`.

import { type Static, Type } from 'typebox';

export const HostToken = Type.Object(
  { host: Type.String(), token: Type.String({ description: 'for the agent of that host, and for no other' }) },
  { additionalProperties: false },
);
export type HostToken = Static<typeof HostToken>;
