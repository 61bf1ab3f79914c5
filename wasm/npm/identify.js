// What a framework computes, from one batch and the number that it printed. A module of its own, loaded when it is asked for.

import { readArray } from "./array.js";
import * as bindings from "./bindings/identify/plumbline_wasm.js";
import { guarded, lazyModule } from "./module.js";
import { giveParameters, wrongKind } from "./parameters.js";

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
export function identify(question) {
  const { inputs = {}, loss, gradients = {}, operation, dialect, params = {}, effort = EFFORT, onProgress } = question;
  if (loss !== undefined && typeof loss !== "number" && typeof loss !== "string") {
    throw wrongKind("loss", "the printed number, or its text");
  }
  if (onProgress !== undefined && typeof onProgress !== "function") throw wrongKind("onProgress", "a function");
  const loaded = identifyModule.bindings();
  return guarded(loaded, () => {
    const asked = new loaded.Identification(effort);
    let answer;
    try {
      if (loss !== undefined) asked.printed(String(loss));
      if (operation !== undefined && operation !== null) asked.operation(String(operation));
      if (dialect !== undefined && dialect !== null) asked.dialect(String(dialect));
      giveParameters(asked, params);
      for (const [name, value] of Object.entries(inputs)) {
        if (value === undefined) continue;
        const { shape, data } = readArray(name, value);
        asked.array(name, shape, data, value.unit);
      }
      for (const [name, value] of Object.entries(gradients)) {
        const { shape, data } = readArray(name, value);
        asked.gradient(name, shape, data, value.unit);
      }
      answer = asked.answer({ progress: onProgress ?? (() => {}) });
    } catch (error) {
      if (!(error instanceof WebAssembly.RuntimeError)) asked.free();
      throw error;
    }
    asked.free();
    return JSON.parse(answer);
  });
}
