// From a request as plain data to a call of the module, and back.

import { text } from "./catalog.js";
import { instance } from "./load.js";
import { guarded } from "./module.js";
import { giveParameters, wrongKind } from "./parameters.js";
import { readArray } from "./array.js";

let described;

/** Everything about every operation: what `evaluate` accepts and returns, with formulas and sources. */
export function catalog() {
  described ??= JSON.parse(text);
  return described;
}

/** Evaluate an operation of the catalog; without `outputs`, all outputs that the inputs determine. */
export function evaluate(operation, request = {}) {
  const { dialect, dtype = "f64", params = {}, inputs = {}, outputs } = request;
  if (dtype !== "f32" && dtype !== "f64") {
    throw wrongKind("dtype", `"f32" or "f64"`);
  }
  const bindings = instance();
  return guarded(bindings, () => {
    const call = new bindings.Call(String(operation), dtype === "f32");
    let results;
    try {
      if (dialect !== undefined && dialect !== null) call.dialect(String(dialect));
      giveParameters(call, params);
      for (const [name, value] of Object.entries(inputs)) {
        if (value !== undefined) giveInput(call, name, value);
      }
      if (outputs !== undefined) {
        if (!Array.isArray(outputs)) throw wrongKind("outputs", "a list of names");
        call.wantNamed();
        for (const name of outputs) call.want(String(name));
      }
      call.run();
      results = {};
      for (let position = 0; position < call.outputs(); position++) {
        const data = dtype === "f32" ? call.takeFloat32s(position) : call.takeFloat64s(position);
        results[call.name(position)] = { shape: Array.from(call.shape(position)), data };
      }
    } catch (error) {
      // A call that stopped the module cannot be freed.
      if (!(error instanceof WebAssembly.RuntimeError)) call.free();
      throw error;
    }
    call.free();
    return results;
  });
}

function giveInput(call, name, value) {
  const { shape, data } = readArray(name, value);
  if (data instanceof Float32Array) call.float32s(name, shape, data);
  else if (data instanceof Uint8Array) call.bytes(name, shape, data);
  else if (data instanceof Uint32Array) call.indices(name, shape, data);
  else call.float64s(name, shape, data);
}
