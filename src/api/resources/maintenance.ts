// Maintenance: how the command goes that ends with a reboot of a host. Part of the status of the host.

import { type Static, Type } from 'typebox';

export const MaintenanceReport = Type.Object(
  {
    id: Type.String({ maxLength: 64, description: 'of the order' }),
    state: Type.Enum(['running', 'finished', 'failed']),
    message: Type.Optional(Type.String({ maxLength: 1024, description: 'why it failed' })),
  },
  { additionalProperties: false, description: 'its last maintenance command, as its agent says' },
);
export type MaintenanceReport = Static<typeof MaintenanceReport>;
