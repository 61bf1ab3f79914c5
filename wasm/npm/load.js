// Which of the two WebAssembly modules with the catalog runs.

import * as bindings from "./bindings/plumbline_wasm.js";
import { lazyModule } from "./module.js";

// Both written out, so that bundlers see them and ship them.
const addresses = {
  simd: () => new URL("./bindings/plumbline_wasm_simd128.wasm", import.meta.url),
  scalar: () => new URL("./bindings/plumbline_wasm_scalar.wasm", import.meta.url),
};

/** Whether the host has WebAssembly's vector instructions: whether it accepts a function that returns a vector constant. */
function hasSimd() {
  const vectorConstant = [0xfd, 0x0c, ...new Array(16).fill(0)];
  return WebAssembly.validate(
    Uint8Array.of(
      ...[0, 0x61, 0x73, 0x6d, 1, 0, 0, 0],
      ...[1, 5, 1, 0x60, 0, 1, 0x7b],
      ...[3, 2, 1, 0],
      ...[10, 22, 1, 20, 0, ...vectorConstant, 11],
    ),
  );
}

const catalogModule = lazyModule(
  bindings,
  ({ simd = hasSimd() }) => (simd ? addresses.simd() : addresses.scalar()),
  "`await init()` first",
);

/**
 * Load the WebAssembly module. Later calls do nothing.
 *
 * `simd`: whether to take the build with vector instructions; without it, where the host has them. The bits are the same.
 * `module`: the module itself (bytes, a response, a compiled module or an address) where it is not beside this file.
 */
export function init(options) {
  return catalogModule.init(options);
}

/** The bindings of the loaded module. */
export function instance() {
  return catalogModule.bindings();
}
