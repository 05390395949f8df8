import { useEffect, useRef, useState, type FocusEvent, type FormEvent, type KeyboardEvent } from "react";

type Field = HTMLInputElement | HTMLTextAreaElement;

// useDraft is what somebody writes into a field. It is theirs until they leave the field:
// what comes from the server meanwhile, however late, changes nothing under their hands.
// It is given on when the field is left, by Enter, and when the form goes away; it is
// shown until what it was given to has ended, and stays where that has refused it (false).
// give says undefined where there is nothing to be done, and what is there is shown again.
export function useDraft(now: string, give: (text: string) => Promise<boolean> | undefined) {
  const [, show] = useState(0);
  const text = useRef<string | undefined>(undefined); // as it is written; undefined: nobody writes
  const given = useRef<string | undefined>(undefined);
  const open = useRef(0); // given and not ended
  const of = useRef({ now, give });
  of.current = { now, give };
  const put = (t?: string) => {
    text.current = t;
    show((n) => n + 1);
  };
  const leave = () => {
    const t = text.current;
    if (t === undefined || t === given.current) return;
    if (given.current === undefined && t === of.current.now) return put();
    const ends = of.current.give(t);
    if (!ends) return put();
    given.current = t;
    open.current++;
    void ends.then((taken) => {
      if (--open.current > 0) return;
      if (taken && text.current === given.current) put();
      given.current = undefined;
    });
  };
  useEffect(() => leave, []);
  return {
    text: text.current ?? now,
    put,
    leave,
    // field is for an input or a textarea.
    field: {
      value: text.current ?? now,
      onInput: (e: FormEvent<Field>) => put((e.currentTarget as Field).value),
      onBlur: (_: FocusEvent<Field>) => leave(),
    },
    enter: (e: KeyboardEvent<Field>) => {
      if (e.key === "Enter") leave();
    },
  };
}
