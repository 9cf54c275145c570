// Reading one's own writes, whichever control plane answers: a client says which revision it has seen, and gets nothing older.

/** `berth-at-least: 4711`. */
export const atLeastHeader = 'berth-at-least';
