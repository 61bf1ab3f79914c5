// In Node the module is read from disk when it is first needed: nothing has to be awaited.

import { readFileSync } from "node:fs";
import { readModulesWith } from "./module.js";

readModulesWith((url) => readFileSync(url));

export * from "./index.js";
