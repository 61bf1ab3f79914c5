// A WebAssembly module with its bindings: loaded once, when it is needed.

import { PlumblineError } from "./error.js";

let readNow;

/** Give a way to read a module's bytes at once, which only some hosts have. */
export function readModulesWith(read) {
  readNow = read;
}

/** A module that is not loaded yet; `address` tells where it stands, from the options of `init`. */
export function lazyModule(bindings, address, howToLoad) {
  let loaded = false;
  let loading;

  const loadNow = (options) => {
    bindings.initSync({ module: readNow(address(options)) });
    loaded = true;
  };

  return {
    /** Load it. Later calls do nothing. */
    async init(options = {}) {
      if (loaded) return;
      if (options.module === undefined && readNow) {
        loadNow(options);
        return;
      }
      loading ??= bindings.default({ module_or_path: options.module ?? address(options) });
      try {
        await loading;
        loaded = true;
      } finally {
        loading = undefined;
      }
    },

    /** The bindings of the loaded module. */
    bindings() {
      if (!loaded) {
        if (!readNow) {
          throw new PlumblineError(`the WebAssembly module is not loaded yet: ${howToLoad}`, { kind: "not_loaded" });
        }
        loadNow({});
      }
      return bindings;
    },
  };
}

/** Do something with bindings; what they throw becomes an error of the package. */
export function guarded(bindings, work) {
  try {
    return work();
  } catch (error) {
    if (error instanceof WebAssembly.RuntimeError) {
      // Only memory that cannot be had stops a module.
      throw new PlumblineError("the arrays of this call do not fit into memory", { kind: "too_large" });
    }
    if (!(error instanceof bindings.Refused)) throw error;
    const message = error.message();
    const fields = { kind: error.kind(), argument: error.argument(), index: error.index() };
    error.free();
    throw new PlumblineError(message, fields);
  }
}
