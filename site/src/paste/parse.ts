// Numbers as people have them: JSON, what Python, NumPy and torch print, CSV, cells of a spreadsheet.

import { parseNumber } from '../numbers/format';
import { count, type Tensor } from '../compute/tensor';

/** What is wrong with a text, and at which of its characters. */
export class PasteError extends Error {
  constructor(
    message: string,
    text: string,
    readonly place: number,
  ) {
    const before = text.slice(0, place);
    super(`line ${before.split('\n').length}, column ${place - before.lastIndexOf('\n')}: ${message}`);
  }
}

/** An array as it was written down. */
export interface PastedArray extends Tensor {
  /** Where each number begins in the text. */
  places: number[];
  /** What the last digit of the most precise number stands for. */
  unit: number;
}

/** Arrays by name; the empty name where the text gives none. */
export type Pasted = Map<string, PastedArray>;

/** Numbers in the order in which they stand in the text. */
class Numbers {
  readonly data: number[] = [];
  readonly #places: number[] = [];
  #unit = Infinity;

  push(value: number, place: number, word: string): void {
    this.data.push(value);
    this.#places.push(place);
    const [, after, exponent] = /^[^.e]*(?:\.(\d*))?(?:e(.*))?$/i.exec(word) ?? [];
    if (Number.isFinite(value)) this.#unit = Math.min(this.#unit, Number(`1e${Number(exponent ?? 0) - (after ?? '').length}`));
  }

  array(shape: number[]): PastedArray {
    return { shape, data: Float64Array.from(this.data), places: this.#places, unit: this.#unit };
  }
}

export function parse(text: string): Pasted {
  if (text.trim() === '') throw new PasteError('there is nothing here', text, 0);
  const start = text.trimStart();
  if (/^[[{(]|^[A-Za-z_][\w.]*\s*[=(:]/.test(start) || /^"/.test(start)) return new Reader(text).read();
  return table(text);
}

/** Nested lists, objects of them, and assignments, in the notation of JSON, Python, NumPy and torch. */
class Reader {
  #at = 0;

  constructor(readonly text: string) {}

  read(): Pasted {
    const found: Pasted = new Map();
    this.#space();
    if (this.#peek() === '{') {
      this.#object(found);
    } else {
      while (this.#at < this.text.length) {
        const name = this.#assignment();
        const begin = this.#at;
        const array = this.#tensor();
        if (found.has(name)) throw this.#error(name === '' ? 'a second array stands here without a name' : `“${name}” stands here twice`, begin);
        found.set(name, array);
        this.#space(/[\s,;]/);
      }
    }
    this.#space();
    if (this.#at < this.text.length) throw this.#error(`“${this.#word()}” stands after the end of the numbers`);
    return found;
  }

  #object(found: Pasted): void {
    const begin = this.#at;
    this.#at += 1;
    const fields: Pasted = new Map();
    for (;;) {
      this.#space();
      if (this.#peek() === '}') break;
      const quote = this.#peek();
      if (quote !== '"' && quote !== "'") throw this.#error('a name in quotes is expected');
      const end = this.text.indexOf(quote, this.#at + 1);
      if (end < 0) throw this.#error('the quote is not closed');
      const name = this.text.slice(this.#at + 1, end);
      this.#at = end + 1;
      this.#space();
      if (this.#peek() !== ':') throw this.#error(`a colon is expected after “${name}”`);
      this.#at += 1;
      this.#space();
      if (this.#peek() === '{') {
        // An object of arrays inside an object (`inputs`), or an array with its shape.
        const inner: Pasted = new Map();
        this.#object(inner);
        const only = inner.get('');
        if (only) fields.set(name, only);
        else for (const [key, value] of inner) fields.set(key, value);
      } else if (/["']/.test(this.#peek())) {
        this.#string();
      } else if (/^(null|None)\b/.test(this.text.slice(this.#at, this.#at + 5))) {
        this.#at += 4;
      } else {
        const list = this.#tensor(name === 'bits');
        if (name !== 'bits') fields.set(name, list);
      }
      this.#space();
      if (this.#peek() === ',') this.#at += 1;
      else if (this.#peek() !== '}') throw this.#error('a comma or } is expected');
    }
    this.#at += 1;
    const shape = fields.get('shape');
    const values = fields.get('values') ?? fields.get('data');
    if (shape && values) {
      const sizes = Array.from(shape.data);
      if (count(sizes) !== values.data.length) throw this.#error(`shape [${sizes}] does not hold ${values.data.length} numbers`, begin);
      found.set('', { ...values, shape: sizes });
      return;
    }
    for (const [name, value] of fields) found.set(name, value);
  }

  #string(): void {
    const end = this.text.indexOf(this.#peek(), this.#at + 1);
    if (end < 0) throw this.#error('the quote is not closed');
    this.#at = end + 1;
  }

  /** `name =`, if one stands here. */
  #assignment(): string {
    this.#space();
    const match = /^([A-Za-z_]\w*)\s*[=:]\s*/.exec(this.text.slice(this.#at));
    if (!match) return '';
    this.#at += match[0].length;
    return match[1]!;
  }

  /** `tensor([...], dtype=...)`, `array([...])`, `[...]`, or one number. */
  #tensor(skipStrings = false): PastedArray {
    const call = /^(?:torch\.|np\.|numpy\.|jnp\.)?(?:tensor|array|Parameter|Tensor|float32|float64)\s*\(\s*/.exec(this.text.slice(this.#at));
    if (call) this.#at += call[0].length;
    const numbers = new Numbers();
    const shape: number[] = [];
    if (this.#peek() === '[' || this.#peek() === '(') this.#list(0, shape, numbers, skipStrings);
    else this.#number(numbers);
    if (call) {
      // What torch prints after the numbers: device, dtype, grad_fn.
      const end = this.#closing();
      this.#at = end + 1;
    }
    return numbers.array(shape);
  }

  #closing(): number {
    let depth = 1;
    for (let index = this.#at; index < this.text.length; index += 1) {
      if (this.text[index] === '(') depth += 1;
      if (this.text[index] === ')') depth -= 1;
      if (depth === 0) return index;
    }
    throw this.#error('a ) is missing at the end', this.text.length);
  }

  #list(depth: number, shape: number[], numbers: Numbers, skipStrings: boolean): void {
    const begin = this.#at;
    const close = this.#peek() === '[' ? ']' : ')';
    this.#at += 1;
    let members = 0;
    for (;;) {
      this.#space(/[\s,]/);
      const next = this.#peek();
      if (next === '') throw this.#error(`the list that begins here has no ${close}`, begin);
      if (next === close) break;
      if (next === '[' || next === '(') {
        this.#list(depth + 1, shape, numbers, skipStrings);
      } else if (skipStrings && /["']/.test(next)) {
        const inner = this.#at;
        this.#string();
        if (!/^["'](NaN|-?Infinity)/.test(this.text.slice(inner, inner + 11))) numbers.push(0, inner, '0');
      } else {
        if (shape.length > depth + 1) throw this.#error('a number stands where the other rows have a list');
        this.#number(numbers);
      }
      members += 1;
    }
    this.#at += 1;
    if (shape[depth] === undefined) shape[depth] = members;
    else if (shape[depth] !== members) {
      throw this.#error(`this row has ${members} ${members === 1 ? 'entry' : 'entries'}, the first one has ${shape[depth]}`, begin);
    }
  }

  #number(numbers: Numbers): void {
    if (this.text.startsWith('...', this.#at) || this.#peek() === '…') {
      throw this.#error('the printout is shortened here; print all of it (torch.set_printoptions(threshold=float("inf")))');
    }
    const quoted = /^["'](NaN|-?Infinity)["']/.exec(this.text.slice(this.#at, this.#at + 12));
    const word = quoted ? quoted[0] : this.#word();
    const value = parseNumber(quoted ? quoted[1]! : word.replace(/\.$/, ''));
    if (value === null) throw this.#error(`“${word}” is no number`);
    numbers.push(value, this.#at, word);
    this.#at += word.length;
  }

  #word(): string {
    return /^[^\s,;[\](){}]+/.exec(this.text.slice(this.#at, this.#at + 60))?.[0] ?? this.#peek();
  }

  #peek(): string {
    return this.text[this.#at] ?? '';
  }

  #space(kind = /\s/): void {
    while (this.#at < this.text.length && kind.test(this.text[this.#at]!)) this.#at += 1;
  }

  #error(message: string, at = this.#at): PasteError {
    return new PasteError(message, this.text, at);
  }
}

/** Rows of cells: tabs (a spreadsheet), semicolons, commas, or spaces between the numbers; names in the first row or not. */
function table(text: string): Pasted {
  const lines = [...text.matchAll(/[^\r\n]+/g)].map(({ 0: content, index }) => ({ content, start: index })).filter(({ content }) => content.trim() !== '');
  const separator = separatorOf(lines[0]!.content);
  const split = ({ content, start }: (typeof lines)[number]) => cellsOf(content, separator).map(({ cell, at }) => ({ cell, at: start + at }));
  const head = split(lines[0]!).map(({ cell }) => unquote(cell));
  // A decimal comma stands where commas do not separate.
  const plain = (cell: string) => (separator === ',' ? unquote(cell) : unquote(cell).replace(/^([+-]?\d*),(\d+)$/, '$1.$2'));
  const named = head.some((cell) => cell !== '' && parseNumber(plain(cell)) === null);
  const rows = (named ? lines.slice(1) : lines).map((line) => {
    const cells = split(line);
    if (cells.length !== head.length) {
      throw new PasteError(`this row has ${cells.length} ${cells.length === 1 ? 'cell' : 'cells'}, the first one has ${head.length}`, text, line.start);
    }
    return cells.map(({ cell, at }) => {
      const word = plain(cell);
      const value = parseNumber(word);
      if (value === null) throw new PasteError(word === '' ? 'a number is missing' : `“${word}” is no number`, text, at);
      return { value, at, word };
    });
  });
  if (rows.length === 0) throw new PasteError('the names stand without numbers', text, lines[0]!.start);
  const numbers = (cells: (typeof rows)[number]) => {
    const read = new Numbers();
    for (const { value, at, word } of cells) read.push(value, at, word);
    return read;
  };
  if (!named) return new Map([['', numbers(rows.flat()).array(head.length === 1 ? [rows.length] : [rows.length, head.length])]]);
  const found: Pasted = new Map();
  const place = ['response', 'token'].map((name) => head.indexOf(name));
  const extent = place.map((column) => (column < 0 ? 0 : 1 + Math.max(...rows.map((row) => row[column]!.value))));
  head.forEach((name, index) => {
    if (name === '' || place.includes(index)) return;
    const shape = extent[0]! * extent[1]! === rows.length ? [...extent] : [rows.length];
    found.set(name, numbers(rows.map((row) => row[index]!)).array(shape));
  });
  return found;
}

/** The cells of a line, and where each begins. */
function cellsOf(line: string, separator: string): { cell: string; at: number }[] {
  if (separator === ' ') return [...line.matchAll(/\S+/g)].map(({ 0: cell, index }) => ({ cell, at: index }));
  let at = 0;
  return line.split(separator).map((cell) => {
    const begin = at;
    at += cell.length + separator.length;
    return { cell, at: begin };
  });
}

function separatorOf(line: string): string {
  for (const candidate of ['\t', ';', ',']) if (line.includes(candidate)) return candidate;
  return ' ';
}

function unquote(cell: string): string {
  return cell.trim().replace(/^"(.*)"$/, '$1').trim();
}
