// Which of the two WebAssembly modules runs, and when it is loaded.

import * as bindings from "./bindings/plumbline_wasm.js";
import { PlumblineError } from "./error.js";

// Both written out, so that bundlers see them and ship them.
const modules = {
  simd: () => new URL("./bindings/plumbline_wasm_simd128.wasm", import.meta.url),
  scalar: () => new URL("./bindings/plumbline_wasm_scalar.wasm", import.meta.url),
};

let loaded = false;
let loading;
let readModule;

/** Give a way to read a module's bytes at once, which only some hosts have. */
export function readModulesWith(read) {
  readModule = read;
}

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

function moduleUrl(simd = hasSimd()) {
  return simd ? modules.simd() : modules.scalar();
}

/**
 * Load the WebAssembly module. Later calls do nothing.
 *
 * `simd`: whether to take the build with vector instructions; without it, where the host has them. The bits are the same.
 * `module`: the module itself (bytes, a response, a compiled module or an address) where it is not beside this file.
 */
export async function init({ simd, module } = {}) {
  if (loaded) return;
  if (module === undefined && readModule) {
    loadNow(simd);
    return;
  }
  loading ??= bindings.default({ module_or_path: module ?? moduleUrl(simd) });
  try {
    await loading;
    loaded = true;
  } finally {
    loading = undefined;
  }
}

function loadNow(simd) {
  bindings.initSync({ module: readModule(moduleUrl(simd)) });
  loaded = true;
}

/** The bindings of the loaded module. */
export function instance() {
  if (!loaded) {
    if (!readModule) {
      throw new PlumblineError("the WebAssembly module is not loaded yet: `await init()` first", { kind: "not_loaded" });
    }
    loadNow();
  }
  return bindings;
}
