/** Why a call was refused: one sentence, and what it is about in fields. */
export class PlumblineError extends Error {
  /** One word: `missing_input`, `non_finite`, `shape_mismatch`, …. */
  kind;
  /** The name of the input, parameter or output at fault, where one is. */
  argument;
  /** The flat (row-major) index of the element at fault, where one is. */
  index;

  constructor(message, { kind, argument, index }) {
    super(message);
    this.name = "PlumblineError";
    this.kind = kind;
    this.argument = argument;
    this.index = index;
  }
}
