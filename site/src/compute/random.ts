// A small seeded generator, so that an example is rebuilt from its seed on every machine.

/** SplitMix32: one addition and a mix per number. */
export class Random {
  #state: number;

  /** Numbers depend on the seed and on the name of what they are for. */
  constructor(seed: number, name: string) {
    let hash = 0x811c9dc5 ^ Math.imul(seed, 0x9e3779b9);
    for (let index = 0; index < name.length; index += 1) {
      hash = Math.imul(hash ^ name.charCodeAt(index), 0x01000193);
    }
    this.#state = hash >>> 0;
  }

  /** A number in [0, 1). */
  next(): number {
    this.#state = (this.#state + 0x9e3779b9) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 16), 0x21f0aaad);
    mixed = Math.imul(mixed ^ (mixed >>> 15), 0x735a2d97);
    return ((mixed ^ (mixed >>> 15)) >>> 0) / 4294967296;
  }

  /** A number in [low, high), rounded to `digits` decimals so that it reads well. */
  between(low: number, high: number, digits = 3): number {
    const scale = 10 ** digits;
    return Math.round((low + (high - low) * this.next()) * scale) / scale;
  }

  /** A whole number below `limit`. */
  below(limit: number): number {
    return Math.floor(this.next() * limit);
  }
}
