// What is wrong with a pasted text, with the way to the place.

import type { RefObject } from 'preact';

interface Properties {
  message: string;
  /** The character that it is about; `null` where it is about none. */
  place: number | null;
  box: RefObject<HTMLTextAreaElement | null>;
}

export function Complaint({ message, place, box }: Properties) {
  const show = () => {
    const end = /[\s,;[\](){}]|$/.exec(box.current!.value.slice(place! + 1))!.index;
    box.current!.focus();
    box.current!.setSelectionRange(place, place! + 1 + end);
  };
  return (
    <p class="complaint">
      {message}{' '}
      {place !== null && (
        <button type="button" class="small" onClick={show}>
          show
        </button>
      )}
    </p>
  );
}
