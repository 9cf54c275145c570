// Routes by which the target of a move reads the files of the guest: this control plane asks the host that the guest leaves, over the
// connection that this host holds. Only the target may ask, only while the move is open, and it names the move.

import { ApiError } from '../../../../api/errors.ts';
import { parse } from '../../../../api/parse.ts';
import { MoveManifest } from '../../../../api/agent-protocol.ts';
import { agentRoutes as routes } from '../../../../api/routes/agent.ts';
import { openMigration } from '../../../../core/migrations/migration-state.ts';
import { hostInSession } from '../../../../core/operations/host.ts';
import type { Decider } from '../../../decide.ts';
import type { HostLinks } from '../../agent-link/host-links.ts';
import type { Route } from '../../route.ts';
import { bind } from '../bind.ts';

export function moveRoutes({ decider, links }: { readonly decider: Decider; readonly links: HostLinks }): Route[] {
  const { cache } = decider;
  /** Where the files are, and their path there. */
  const sourceOf = (host: string, name: string, { id, epoch }: { readonly id: string; readonly epoch: number }) => {
    hostInSession(cache, host, epoch);
    const instance = cache.instanceById(name)?.value;
    const migration = instance && openMigration(instance);
    if (migration?.id !== id || migration.to !== host || migration.step !== 'Copying')
      throw new ApiError('NotFound', `there is no move of instance ${name} to host "${host}" with this id`);
    return { from: migration.from, path: `/guests/${name}/moves/${id}` };
  };
  return [
    bind(routes.moveManifest, async ({ params, query }, { signal }) => {
      const { from, path } = sourceOf(params.host, params.name, query);
      const { body } = await links.get(from, path, signal);
      const pieces: Uint8Array[] = [];
      for await (const piece of body) pieces.push(piece);
      const manifest: unknown = JSON.parse(Buffer.concat(pieces).toString());
      return { status: 200, json: parse(MoveManifest, manifest) };
    }),
    bind(routes.readMove, async ({ params, query: { offset, length, ...query } }, { signal }) => {
      const { from, path } = sourceOf(params.host, params.name, query);
      const file = /^(disk|vol_[0-9a-z]{26})$/.exec(params.file)?.[0];
      if (file === undefined) throw new ApiError('NotFound', 'there is no such file');
      const answer = await links.get(from, `${path}/${file}?offset=${offset}&length=${length}`, signal);
      return { status: 200, bytes: answer.body };
    }),
  ];
}
