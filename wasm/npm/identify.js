// What a framework computes, from one batch and the number that it printed. A module of its own, loaded when it is asked for.

import { readArray } from "./array.js";
import * as bindings from "./bindings/identify/plumbline_wasm.js";
import { PlumblineError } from "./error.js";
import { giveParameters } from "./evaluate.js";
import { guarded, lazyModule } from "./module.js";

const identifyModule = lazyModule(
  bindings,
  () => new URL("./bindings/identify/plumbline_wasm.wasm", import.meta.url),
  '`await init()` of "plumbline-rl/identify" first',
);

/** Load the module. Later calls do nothing. */
export function init(options) {
  return identifyModule.init(options);
}

/** How many numbers are looked at where nothing else is said: a second or a few. */
const EFFORT = 50_000_000;

/** Which operations, dialects, variants or mistakes give the printed number on these inputs. */
export function identify({ inputs = {}, loss, gradients = {}, operation, dialect, params = {}, effort = EFFORT }) {
  if (typeof loss !== "number" && typeof loss !== "string") {
    throw new PlumblineError("`loss` must be the printed number, or its text", { kind: "wrong_kind", argument: "loss" });
  }
  const loaded = identifyModule.bindings();
  return guarded(loaded, () => {
    const question = new loaded.Identification(String(loss), effort);
    let answer;
    try {
      if (operation !== undefined && operation !== null) question.operation(String(operation));
      if (dialect !== undefined && dialect !== null) question.dialect(String(dialect));
      giveParameters(question, params);
      for (const [name, value] of Object.entries(inputs)) {
        const { shape, data } = readArray(name, value);
        question.input(name, shape, data);
      }
      for (const [name, value] of Object.entries(gradients)) {
        const { shape, data } = readArray(name, value);
        question.gradient(name, shape, data);
      }
      answer = question.answer();
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) question.free();
      throw error;
    }
    question.free();
    return JSON.parse(answer);
  });
}
