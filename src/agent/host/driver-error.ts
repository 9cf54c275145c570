// What goes wrong with guests, images and networks of a host, by code. Control plane and users get the code and the message.

export const driverErrorCodes = [
  'ImageUnavailable', // cannot be fetched, or does not exist
  'ImageChecksumMismatch',
  'ImageInvalid', // truncated, wrong format, refused by the gate
  'ImageTooLarge',
  'DiskFull',
  'PortInUse',
  'HypervisorFailed', // could not be started, or refused
  'ContainerEngineFailed', // the same of containers; records of earlier versions have HypervisorFailed
  'RepositoryUnavailable', // the network, a missing repository, a credential
  'CommitNotFound',
  'RepositoryRefused', // by the rules of the host, or too large
  'GitMissing', // on this host
  'NoSuchGuest',
  'NotPossible', // not with this guest, or not now
  'Aborted',
  'Internal',
] as const;
export type DriverErrorCode = (typeof driverErrorCodes)[number];

export class DriverError extends Error {
  override name = 'DriverError';
  readonly code: DriverErrorCode;
  constructor(code: DriverErrorCode, message: string, cause?: unknown) {
    super(message, { cause });
    this.code = code;
  }
}
