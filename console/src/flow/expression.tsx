import { createContext } from "preact";
import { useContext, useEffect, useId, useRef, useState, type FocusEvent, type FormEvent, type KeyboardEvent, type ReactNode } from "react";
import { call } from "../api/client";
import { print } from "../api/json";
import type { FlowName, FlowPreview } from "../api/types";
import { useT } from "../i18n";
import { wrongJson } from "../ui/addjob";
import { useDraft } from "../ui/draft";

// Fields with expressions: they offer what an expression there may use, and show what it
// would give for the sample of the dry run.

// Sample is what the server needs to know for that.
export interface Sample {
  text: string; // the file
  step: string; // empty: the flow's output
  input: string; // JSON
  outputs: Record<string, string>; // JSON by step
}

export const Sampled = createContext<Sample | undefined>(undefined);

// expr: CEL, as in when. value: a text with ${…} in it. json: data with such texts.
type Kind = "expr" | "value" | "json";

const shown = 12;

// asked is the part of the request that says what is to be previewed.
function asked(kind: Kind, text: string): string {
  if (text.trim() === "" || (kind !== "expr" && !text.includes("${")) || (kind === "json" && wrongJson(text))) return "";
  if (kind === "expr") return `,"expression":${JSON.stringify(text)}`;
  return `,"value":${kind === "json" ? text : JSON.stringify(text)}`;
}

function useHelp(kind: Kind, text: string, on: boolean): FlowPreview | undefined {
  const sample = useContext(Sampled);
  const [help, set] = useState<FlowPreview>();
  useEffect(() => {
    if (!on || !sample) return;
    const stop = new AbortController();
    const timer = setTimeout(() => {
      const outputs = Object.entries(sample.outputs).map(([id, v]) => `${JSON.stringify(id)}:${v}`);
      const raw = `${JSON.stringify({ source: sample.text, step: sample.step }).slice(0, -1)},"input":${wrongJson(sample.input) ? "null" : sample.input},"outputs":{${outputs.join(",")}}${asked(kind, text)}}`;
      call<FlowPreview>("/api/flows/preview", { raw, signal: stop.signal }).then(set, () => set(undefined)); // the file's problems tell why
    }, help ? 250 : 0);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [on, text, sample]);
  return on ? help : undefined;
}

// token is the name that is being written; undefined: none is.
export function token(kind: Kind, before: string): string | undefined {
  if (kind !== "expr") {
    const open = before.lastIndexOf("${");
    if (open < 0 || before.indexOf("}", open) >= 0) return undefined;
    before = before.slice(open + 2);
  }
  if (/["'][^"']*$/.test(before) && (before.match(/["']/g)!.length % 2 === 1)) return undefined; // within a text
  return /[A-Za-z_][\w.]*$/.exec(before)?.[0] ?? (/(^|[\s(,!&|=<>+\-*/?:[])$/.test(before) ? "" : undefined);
}

// offers are the names that go on with what is written, the near ones first.
export function offers(names: FlowName[], written: string): FlowName[] {
  const deep = written.split(".").length + 1;
  return names.filter((n) => n.name !== written && n.name.startsWith(written) && n.name.split(".").length <= Math.max(2, deep)).slice(0, shown);
}

type Box = HTMLInputElement | HTMLTextAreaElement;

interface Props {
  name: ReactNode;
  now: string;
  give: (text: string) => Promise<boolean> | undefined;
  kind: Kind;
  rows?: number; // several lines
  placeholder?: string;
  required?: boolean;
  number?: boolean;
}

export function Expression({ name, now, give, kind, rows, placeholder, required, number }: Props) {
  const t = useT();
  const wrongIn = (text: string) => (kind === "json" && text.trim() !== "" ? wrongJson(text) : undefined);
  const { text, put, field, leave } = useDraft(now, (s) => (wrongIn(s) ? Promise.resolve(false) : give(kind === "json" ? s : s.trim())));
  const [on, focus] = useState(false);
  const [caret, setCaret] = useState<number>();
  const [at, highlight] = useState(-1);
  const box = useRef<Box | null>(null);
  const id = useId();
  const help = useHelp(kind, text, on);
  const written = on && caret !== undefined ? token(kind, text.slice(0, caret)) : undefined;
  const list = written === undefined || !help ? [] : offers(help.names, written);
  const wrong = wrongIn(text);
  const pick = (n: FlowName) => {
    const from = caret! - written!.length;
    const end = from + n.name.length;
    put(text.slice(0, from) + n.name + text.slice(caret));
    setCaret(end);
    highlight(-1);
    requestAnimationFrame(() => box.current?.setSelectionRange(end, end));
  };
  const press = (e: KeyboardEvent<Box>) => {
    if (list.length > 0 && (e.key === "ArrowDown" || e.key === "ArrowUp") && (rows === undefined || at >= 0 || e.altKey || written !== "")) {
      e.preventDefault();
      highlight((at + (e.key === "ArrowDown" ? 1 : -1) + list.length) % list.length);
    } else if (e.key === "Enter" && at >= 0 && list[at]) {
      e.preventDefault();
      pick(list[at]);
    } else if (e.key === "Escape" && list.length > 0) {
      e.preventDefault();
      setCaret(undefined);
    } else if (e.key === "Enter" && rows === undefined) leave();
  };
  const same = {
    ...field, ref: (e: Box | null) => { box.current = e; }, placeholder, required, spellcheck: false, "aria-autocomplete": "list" as const, "aria-invalid": !!wrong,
    onInput: (e: FormEvent<Box>) => { field.onInput(e); setCaret((e.currentTarget as Box).selectionStart ?? undefined); highlight(-1); },
    onFocus: () => focus(true),
    onBlur: (e: FocusEvent<Box>) => { field.onBlur(e); focus(false); setCaret(undefined); },
    onKeyDown: press,
  };
  return (
    <div class="expression">
      <label>{name}{rows === undefined ? <input type="text" role="combobox" aria-expanded={list.length > 0} aria-controls={id} autoComplete="off" inputMode={number ? "decimal" : "text"} {...same} /> : <textarea class="code" rows={rows} {...same} />}</label>
      {wrong && <span class="bad">{wrong}</span>}
      {list.length > 0 && (
        <ul id={id} class="offers" role="listbox" aria-label={t("expr.offers")}>
          {list.map((n, i) => <li key={n.name} role="option" aria-selected={i === at} onMouseDown={(e) => { e.preventDefault(); pick(n); }}><code>{n.name}</code> <span class="dim">{n.type}</span></li>)}
        </ul>
      )}
      {on && help && (help.value !== undefined || help.error) && <p class={help.error ? "preview bad" : "preview"} role="status">{help.error ?? "= " + short(print(help.value))}</p>}
    </div>
  );
}

const short = (s: string) => (s.length > 300 ? s.slice(0, 300) + "…" : s);
