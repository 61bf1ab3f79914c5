// In Node the module is read from disk when it is first needed.

import "./node.js";

export * from "./identify.js";
