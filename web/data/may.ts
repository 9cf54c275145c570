// What the user may do: what is not permitted is not offered. The server decides again at each request, so that this is only for the eyes.

import { useQuery } from '@tanstack/react-query';
import type { CanIRequest } from '../../src/api/routes/access.ts';
import { client } from './client.ts';

/** False until the server has answered. */
export function useMay(verb: CanIRequest['verb'], resource: CanIRequest['resource'], project?: string): boolean {
  const question: CanIRequest = { verb, resource, ...(project ? { project } : {}) };
  const { data } = useQuery({
    queryKey: ['may', verb, resource, project],
    staleTime: 60_000,
    queryFn: () => client.canI(question),
  });
  return data?.allowed ?? false;
}
