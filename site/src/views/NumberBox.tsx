// A box that takes a number exactly as it is typed, and says what is wrong with what is none.

import { useEffect, useRef, useState } from 'preact/hooks';
import { parseNumber } from '../numbers/format';

interface Properties {
  id?: string;
  label: string;
  value: string;
  disabled?: boolean;
  /** What else is wrong with the number; `null` where nothing is. */
  check?: (value: number) => string | null;
  invalid?: boolean;
  describedBy?: string;
  class?: string;
  onValue: (value: number) => void;
  onKeyDown?: (event: KeyboardEvent) => void;
  onPaste?: (event: ClipboardEvent) => void;
  onFocus?: () => void;
  onComplaint?: (complaint: string | null) => void;
}

export function NumberBox(properties: Properties) {
  const { value, check, onValue, onComplaint } = properties;
  const [text, setText] = useState<string | null>(null);
  const [complaint, setComplaint] = useState<string | null>(null);
  const shown = useRef(value);

  // A value that changes from elsewhere (slider, undo, link) replaces what stands in the box.
  useEffect(() => {
    if (shown.current !== value) {
      shown.current = value;
      setText((typed) => (typed !== null && Object.is(parseNumber(typed), Number(value)) ? typed : null));
      setComplaint(null);
      onComplaint?.(null);
    }
  }, [value]);

  const onInput = (event: Event) => {
    const typed = (event.currentTarget as HTMLInputElement).value;
    setText(typed);
    const number = parseNumber(typed);
    const wrong = number === null ? (typed.trim() === '' ? 'a number is missing' : `“${typed}” is no number`) : (check?.(number) ?? null);
    setComplaint(wrong);
    onComplaint?.(wrong);
    if (wrong === null) onValue(number!);
  };

  return (
    <input
      id={properties.id}
      class={properties.class ?? 'number'}
      type="text"
      inputMode="decimal"
      autocomplete="off"
      spellcheck={false}
      aria-label={properties.label}
      aria-invalid={complaint !== null || properties.invalid === true}
      aria-describedby={properties.describedBy}
      title={complaint ?? undefined}
      disabled={properties.disabled}
      value={text ?? value}
      onInput={onInput}
      onBlur={() => {
        if (complaint === null) setText(null);
      }}
      onKeyDown={properties.onKeyDown}
      onPaste={properties.onPaste}
      onFocus={properties.onFocus}
    />
  );
}
