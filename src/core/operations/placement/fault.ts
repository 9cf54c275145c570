// Placement fault: a refusal in the words and with the code of OpenStack's Placement API.

import { ApiError, type ErrorCode } from '../../../api/errors.ts';

/** The codes that clients of version 1.23 and later read. */
export const placementCodes = {
  undefined: 'placement.undefined_code',
  inventoryInUse: 'placement.inventory.inuse',
  concurrentUpdate: 'placement.concurrent_update',
  duplicateName: 'placement.duplicate_name',
  providerInUse: 'placement.resource_provider.inuse',
  cannotDeleteParent: 'placement.resource_provider.cannot_delete_parent',
  providerNotFound: 'placement.resource_provider.not_found',
  duplicateKey: 'placement.query.duplicate_key',
  badValue: 'placement.query.bad_value',
  missingValue: 'placement.query.missing_value',
} as const;

export type PlacementCode = (typeof placementCodes)[keyof typeof placementCodes];

export class PlacementFault extends ApiError {
  override name = 'PlacementFault';
  readonly placementCode: PlacementCode;

  constructor(code: ErrorCode, message: string, placementCode: PlacementCode = placementCodes.undefined) {
    super(code, message);
    this.placementCode = placementCode;
  }
}

export function badRequest(message: string, code?: PlacementCode): PlacementFault {
  return new PlacementFault('InvalidRequest', message, code);
}

export function notFound(message: string): PlacementFault {
  return new PlacementFault('NotFound', message);
}

export function conflict(message: string, code?: PlacementCode): PlacementFault {
  return new PlacementFault('Conflict', message, code);
}

/** What the Placement API may not do to what is ours. */
export function ours(what: string, instead: string): PlacementFault {
  return conflict(`${what} is managed by Berth and cannot be changed through the Placement API; ${instead}`);
}
