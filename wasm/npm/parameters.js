// Parameters on their way into a module.

import { PlumblineError } from "./error.js";

/** Hand parameters to a call, or to whatever else takes them. */
export function giveParameters(call, params) {
  for (const [name, value] of Object.entries(params)) {
    if (value !== undefined) giveParameter(call, name, value);
  }
}

function giveParameter(call, name, value) {
  if (value === null) call.off(name);
  else if (typeof value === "number") call.number(name, value);
  else if (typeof value === "boolean") call.flag(name, value);
  else if (typeof value === "string") call.choice(name, value);
  else throw wrongKind(name, "a number, true, false, a name or null");
}

/** The error of an argument that is something else than what it must be. */
export function wrongKind(argument, expected) {
  return new PlumblineError(`\`${argument}\` must be ${expected}`, { kind: "wrong_kind", argument });
}
