// What a part of the control plane that talks to other systems says of itself, for /readyz?verbose. It never makes the
// control plane unready: that serves without them.

export interface PartReport {
  readonly name: string;
  readonly ok: boolean;
  readonly message: string;
}
