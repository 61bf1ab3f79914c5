// Numbers as people have them: JSON, what Python, NumPy and torch print, CSV, cells of a spreadsheet.

import { parseNumber } from '../numbers/format';
import { count, type Tensor } from '../compute/tensor';

/** What is wrong with a text, and where (both from 1). */
export class PasteError extends Error {
  constructor(
    message: string,
    readonly line: number,
    readonly column: number,
  ) {
    super(`line ${line}, column ${column}: ${message}`);
  }
}

/** Arrays by name; the empty name where the text gives none. */
export type Pasted = Map<string, Tensor>;

export function parse(text: string): Pasted {
  if (text.trim() === '') throw new PasteError('there is nothing here', 1, 1);
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
    const fields = new Map<string, Tensor>();
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
      found.set('', { shape: sizes, data: values.data });
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
  #tensor(skipStrings = false): Tensor {
    const call = /^(?:torch\.|np\.|numpy\.|jnp\.)?(?:tensor|array|Parameter|Tensor|float32|float64)\s*\(\s*/.exec(this.text.slice(this.#at));
    if (call) this.#at += call[0].length;
    const data: number[] = [];
    const shape: number[] = [];
    if (this.#peek() === '[' || this.#peek() === '(') this.#list(0, shape, data, skipStrings);
    else data.push(this.#number());
    if (call) {
      // What torch prints after the numbers: device, dtype, grad_fn.
      const end = this.#closing();
      this.#at = end + 1;
    }
    return { shape, data: Float64Array.from(data) };
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

  #list(depth: number, shape: number[], data: number[], skipStrings: boolean): void {
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
        this.#list(depth + 1, shape, data, skipStrings);
      } else if (skipStrings && /["']/.test(next)) {
        const inner = this.#at;
        this.#string();
        if (!/^["'](NaN|-?Infinity)/.test(this.text.slice(inner, inner + 11))) data.push(0);
      } else {
        if (shape.length > depth + 1) throw this.#error('a number stands where the other rows have a list');
        data.push(this.#number());
      }
      members += 1;
    }
    this.#at += 1;
    if (shape[depth] === undefined) shape[depth] = members;
    else if (shape[depth] !== members) {
      throw this.#error(`this row has ${members} ${members === 1 ? 'entry' : 'entries'}, the first one has ${shape[depth]}`, begin);
    }
  }

  #number(): number {
    if (this.text.startsWith('...', this.#at) || this.#peek() === '…') {
      throw this.#error('the printout is shortened here; print all of it (torch.set_printoptions(threshold=float("inf")))');
    }
    const quoted = /^["'](NaN|-?Infinity)["']/.exec(this.text.slice(this.#at, this.#at + 12));
    const word = quoted ? quoted[0] : this.#word();
    const value = parseNumber(quoted ? quoted[1]! : word.replace(/\.$/, ''));
    if (value === null) throw this.#error(`“${word}” is no number`);
    this.#at += word.length;
    return value;
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
    const before = this.text.slice(0, at);
    const line = before.split('\n').length;
    return new PasteError(message, line, at - before.lastIndexOf('\n'));
  }
}

/** Rows of cells: tabs (a spreadsheet), semicolons, commas, or spaces between the numbers; names in the first row or not. */
function table(text: string): Pasted {
  const lines = text.split(/\r?\n/).map((content, index) => ({ content, line: index + 1 })).filter(({ content }) => content.trim() !== '');
  const separator = separatorOf(lines[0]!.content);
  const split = (content: string) => (separator === ' ' ? content.trim().split(/\s+/) : content.split(separator));
  const head = split(lines[0]!.content).map((cell) => unquote(cell));
  // A decimal comma stands where commas do not separate.
  const plain = (cell: string) => (separator === ',' ? unquote(cell) : unquote(cell).replace(/^([+-]?\d*),(\d+)$/, '$1.$2'));
  const named = head.some((cell) => cell !== '' && parseNumber(plain(cell)) === null);
  const rows = (named ? lines.slice(1) : lines).map(({ content, line }) => {
    const cells = split(content);
    if (cells.length !== head.length) {
      throw new PasteError(`this row has ${cells.length} ${cells.length === 1 ? 'cell' : 'cells'}, the first one has ${head.length}`, line, 1);
    }
    return cells.map((cell, index) => {
      const text = plain(cell);
      const value = parseNumber(text);
      if (value === null) {
        const column = cells.slice(0, index).join(separator).length + (index === 0 ? 1 : 2);
        throw new PasteError(text === '' ? 'a number is missing' : `“${text}” is no number`, line, column);
      }
      return value;
    });
  });
  if (rows.length === 0) throw new PasteError('the names stand without numbers', lines[0]!.line, 1);
  if (!named) {
    const data = rows.flat();
    return new Map([['', { shape: head.length === 1 ? [rows.length] : [rows.length, head.length], data: Float64Array.from(data) }]]);
  }
  const found: Pasted = new Map();
  const place = ['response', 'token'].map((name) => head.indexOf(name));
  const extent = place.map((column) => (column < 0 ? 0 : 1 + Math.max(...rows.map((row) => row[column]!))));
  head.forEach((name, index) => {
    if (name === '' || place.includes(index)) return;
    const data = Float64Array.from(rows, (row) => row[index]!);
    const shape = extent[0]! * extent[1]! === data.length ? extent : [data.length];
    found.set(name, { shape: [...shape], data });
  });
  return found;
}

function separatorOf(line: string): string {
  for (const candidate of ['\t', ';', ',']) if (line.includes(candidate)) return candidate;
  return ' ';
}

function unquote(cell: string): string {
  return cell.trim().replace(/^"(.*)"$/, '$1').trim();
}
