import { useEffect, useMemo, useRef, useState } from "react";
import { useT } from "../i18n";
import { useStore } from "../store";
import { now } from "./live";

const keys = ["state", "queue", "kind", "payload.", "id", "tag", "tenant", "group", "owner", "parent", "code", "error", "since", "until"];
const states = ["waiting", "delayed", "active", "completed", "dead", "cancelled", "expired"];
const times = ["15m", "1h", "6h", "24h", "7d"];

export interface Known {
  kinds: string[];
  codes: string[];
}

// quote writes a value as the filter's grammar wants it.
export function quote(v: string): string {
  return v !== "" && !/[\s"\\]/.test(v) ? v : '"' + v.replace(/[\\"]/g, "\\$&") + '"';
}

// termAt is the term under the caret, and where it begins.
export function termAt(text: string, caret: number): { term: string; start: number } {
  let start = 0;
  let quoted = false;
  for (let i = 0; i < caret; i++) {
    if (text[i] === "\\" && quoted) i++;
    else if (text[i] === '"') quoted = !quoted;
    else if (/\s/.test(text[i]) && !quoted) start = i + 1;
  }
  return { term: text.slice(start, caret), start };
}

export function suggest(term: string, queues: string[], known: Known): string[] {
  const colon = term.indexOf(":");
  if (colon < 0) return keys.filter((k) => k.startsWith(term)).map((k) => (k.endsWith(".") ? k : k + ":"));
  const key = term.slice(0, colon);
  const part = term.slice(colon + 1);
  const values: Record<string, string[]> = { state: states, queue: queues, kind: known.kinds, name: known.kinds, code: known.codes, since: times, until: times };
  return (values[key] ?? []).filter((v) => v.startsWith(part) && v !== part).map((v) => key + ":" + quote(v));
}

// FilterBox is a text in the grammar of filters, with completion.
export function FilterBox({ value, set: tell, known }: { value: string; set: (v: string) => void; known: Known }) {
  const t = useT();
  const overview = useStore(now).overview;
  const queues = useMemo(() => overview?.queues.map((q) => q.name) ?? [], [overview]);
  const input = useRef<HTMLInputElement>(null);
  const [text, setText] = useState(value);
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(-1);
  const [caret, setCaret] = useState(0);
  // What comes back of our own telling is old by then: somebody may have typed on. Only what others have set is taken.
  const told = useRef(value);
  const set = (v: string) => tell((told.current = v));
  useEffect(() => {
    if (value !== told.current) setText((told.current = value));
  }, [value]);
  const { term, start } = termAt(text, caret);
  const offers = open ? suggest(term, queues, known).slice(0, 8) : [];
  const take = (offer: string) => {
    const done = !/[:.]$/.test(offer);
    const next = text.slice(0, start) + offer + (done ? " " : "") + text.slice(caret).trimStart();
    const to = start + offer.length + (done ? 1 : 0);
    setText(next);
    setCaret(to);
    setAt(-1);
    const box = input.current!;
    box.value = next; // at once: whoever types on does not wait for a drawing
    box.focus();
    box.setSelectionRange(to, to);
    if (done) set(next.trim());
  };
  const key = (e: KeyboardEvent) => {
    if (e.key === "ArrowDown" && offers.length > 0) setAt((at + 1) % offers.length);
    else if (e.key === "ArrowUp" && offers.length > 0) setAt((at <= 0 ? offers.length : at) - 1);
    else if (e.key === "Tab" && at >= 0) take(offers[at]);
    else if (e.key === "Enter" && at >= 0) take(offers[at]);
    else if (e.key === "Enter") {
      setOpen(false);
      set(text.trim());
      return;
    } else if (e.key === "Escape") {
      if (open && offers.length > 0) setOpen(false);
      else input.current?.blur();
    } else return;
    e.preventDefault();
  };
  return (
    <form class="filter" role="search" onSubmit={(e) => { e.preventDefault(); set(text.trim()); }}>
      <input
        ref={input} data-search type="text" spellcheck={false} autoComplete="off" autoCapitalize="off"
        value={text} placeholder={t("filter.placeholder")} aria-label={t("filter")}
        role="combobox" aria-expanded={offers.length > 0} aria-controls="offers" aria-autocomplete="list" aria-activedescendant={at >= 0 ? "offer" + at : undefined}
        onInput={(e) => { setText(e.currentTarget.value); setCaret(e.currentTarget.selectionStart ?? 0); setOpen(true); setAt(-1); }}
        onFocus={(e) => { setCaret(e.currentTarget.selectionStart ?? 0); setOpen(true); }}
        onClick={(e) => { setCaret(e.currentTarget.selectionStart ?? 0); setOpen(true); }}
        onKeyUp={(e) => setCaret(e.currentTarget.selectionStart ?? 0)}
        onBlur={() => setTimeout(() => setOpen(false), 150)}
        onKeyDown={key}
      />
      {text && <button type="button" class="quiet clear" aria-label={t("clear")} onClick={() => { setText(""); set(""); input.current?.focus(); }}>✕</button>}
      <ul id="offers" role="listbox" aria-label={t("filter.offers")} hidden={offers.length === 0}>
        {offers.map((o, i) => (
          <li key={o} id={"offer" + i} role="option" aria-selected={i === at} onMouseDown={(e) => { e.preventDefault(); take(o); }}>{o}</li>
        ))}
      </ul>
    </form>
  );
}
