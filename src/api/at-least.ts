// Reading one's own writes from any control plane: a client sends the revision that it has seen, and receives nothing
// older.

/** `berth-at-least: 4711`. */
export const atLeastHeader = 'berth-at-least';
