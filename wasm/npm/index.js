// The public interface. Browsers and bundlers come here; Node comes by way of node.js.

export { init } from "./load.js";
export { catalog, evaluate } from "./evaluate.js";
export { PlumblineError } from "./error.js";
export * from "./operations.js";
