// Encryption of small values for storage, as types only: code that keeps a secret in a record receives a `Sealer`. The
// implementation is in server/sealing/; the simulator has none.

/**
 * Where a sealed value is stored. It is the associated data of the encryption: a value that was copied to another
 * record or field does not open.
 */
export interface Place {
  /** Of the record, as `certificateAuthority`. */
  readonly kind: string;
  /** Empty for records without a project. */
  readonly project: string;
  /** Identifies the record among those of its kind and project. */
  readonly id: string;
  /** Of the record, as `keys.server`. */
  readonly field: string;
}

/** A version, the id of the data key and the ciphertext as printable ASCII, for a field of a JSON record. */
export type Sealed = string & { readonly sealed: true };

/** Synchronous: the values are small, and encryption takes microseconds. */
export interface Sealer {
  seal(bytes: Uint8Array, place: Place): Sealed;
  /** Throws `Unopenable`. */
  open(sealed: Sealed, place: Place): Uint8Array;
}

/** A sealed value that cannot be opened: it was changed or moved, or its data key is unknown. */
export class Unopenable extends Error {
  override name = 'Unopenable';
}

/** Whether a text from a record has the form of a sealed value. */
export function isSealed(text: string): text is Sealed {
  return sealedForm.test(text);
}

/** Version 1, 16 hex digits of the data key, base64url. */
const sealedForm = /^sealed1\.[0-9a-f]{16}\.[A-Za-z0-9_-]+$/;
