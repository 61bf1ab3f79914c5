// Undo and redo.

const LIMIT = 200;
/** Changes of the same thing within this time (ms) are one step. */
const TOGETHER = 800;

export class History<T> {
  #past: T[] = [];
  #future: T[] = [];
  #key: string | null = null;
  #time = -Infinity;

  /** Remember what was before a change. */
  push(before: T, key: string | null, now: number): void {
    const continues = key !== null && key === this.#key && now - this.#time < TOGETHER;
    if (!continues) {
      this.#past.push(before);
      if (this.#past.length > LIMIT) this.#past.shift();
    }
    this.#key = key;
    this.#time = now;
    this.#future = [];
  }

  undo(current: T): T | undefined {
    const previous = this.#past.pop();
    if (previous !== undefined) this.#future.push(current);
    this.#key = null;
    return previous;
  }

  redo(current: T): T | undefined {
    const next = this.#future.pop();
    if (next !== undefined) this.#past.push(current);
    this.#key = null;
    return next;
  }

  get canUndo(): boolean {
    return this.#past.length > 0;
  }

  get canRedo(): boolean {
    return this.#future.length > 0;
  }
}
