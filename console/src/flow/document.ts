import { useEffect, useMemo, useRef, useState } from "react";
import { call, Failed } from "../api/client";
import { print } from "../api/json";
import type { CheckedFlow, FlowText } from "../api/types";
import { kept } from "../store";
import { complain } from "../ui/toast";
import type { Edit, File } from "./edits";
import type { SetEdit } from "./fields";

const most = 200; // texts to go back to

// Draft is what was drawn and not published. It is kept by the browser, so that leaving
// the page loses nothing.
interface Draft {
  text: string;
  at: string;
}

function keptDraft(name: string): Draft | undefined {
  try {
    const d = JSON.parse(kept.get("draft." + name) ?? "") as Draft;
    return typeof d.text === "string" ? d : undefined;
  } catch {
    return undefined;
  }
}

// keepDraft keeps a file that is to be drawn on.
export function keepDraft(name: string, text: string | null) {
  kept.set("draft." + name, text === null ? null : JSON.stringify({ text, at: new Date().toISOString() } satisfies Draft));
}

// Document is the file that is drawn, with all its texts to go back to. What it says is
// never older than what was last put into it.
export class Document {
  readonly restored?: string; // when it was left
  private texts: string[];
  private at = 0;
  changed = () => {};

  constructor(readonly name: string, readonly stored: string) {
    this.texts = [stored];
    const draft = keptDraft(name);
    if (!draft || draft.text === stored) return;
    this.texts.push(draft.text); // undo leads to what is stored
    this.at = 1;
    this.restored = draft.at;
  }

  get text() {
    return this.texts[this.at];
  }
  get undoes() {
    return this.at > 0;
  }
  get redoes() {
    return this.at < this.texts.length - 1;
  }

  put(text: string) {
    if (text === this.text) return;
    this.texts = [...this.texts.slice(0, this.at + 1), text].slice(-most);
    this.move(this.texts.length - 1);
  }

  move(to: number) {
    this.at = Math.min(this.texts.length - 1, Math.max(0, to));
    keepDraft(this.name, this.text === this.stored ? null : this.text);
    this.changed();
  }

  undo() {
    this.move(this.at - 1);
  }
  redo() {
    this.move(this.at + 1);
  }
  forget() {
    keepDraft(this.name, null);
  }
}

// useDocument makes changes by the server, one after the other: each in what the one
// before gave. What depends on the file is worked out when it is as the one before left it.
export function useDocument(name: string, stored: string) {
  const [, show] = useState(0);
  const doc = useMemo(() => new Document(name, stored), [name]);
  doc.changed = () => show((n) => n + 1);
  const [checked, shown] = useChecked(doc);
  const busy = useRef(Promise.resolve());
  // then does something when all that was begun before is done.
  const then = (what: () => void) => (busy.current = busy.current.then(what));
  const renamed = useRef<Record<string, string>>({});
  const edit: SetEdit = useMemo(() => async (wanted) => {
    let ok = true;
    await (busy.current = busy.current.then(async () => {
      try {
        const edits = typeof wanted === "function" ? current(wanted, await read(doc.text), renamed.current) : wanted;
        if (edits.length === 0) return;
        doc.put(await change(doc.text, edits));
        for (const e of edits) if (e.rename) renamed.current[e.path.split(".")[1]] = e.rename;
      } catch (e) {
        ok = false;
        complain(e);
      }
    }));
    await shown(doc.text);
    return ok;
  }, [doc]);
  return { doc, checked, edit, then };
}

// current lets a form that still knows a step by the id it had before change it all the same.
function current(wanted: (file: File) => Edit[], file: File, renamed: Record<string, string>): Edit[] {
  const steps = file.steps ?? {};
  const now = (id: string): string => (Object.hasOwn(steps, id) || !renamed[id] ? id : renamed[id]);
  const before = Object.fromEntries(Object.keys(renamed).filter((id) => now(id) !== id).map((id) => [id, steps[now(id)]]));
  Object.setPrototypeOf(steps, before); // found by the name, not listed
  return wanted(file).map((e) => {
    const [first, id, ...rest] = e.path.split(".");
    return first === "steps" && id ? { ...e, path: [first, now(id), ...rest].join(".") } : e;
  });
}

// change sends numbers as they are written.
async function change(source: string, edits: Edit[]): Promise<string> {
  const all = edits.map(({ path, value, rename }) => `{"path":${JSON.stringify(path)}${rename === undefined ? "" : `,"rename":${JSON.stringify(rename)}`}${value === undefined ? "" : `,"value":${print(value)}`}}`);
  return (await call<FlowText>("/api/flows/edit", { raw: `{"source":${JSON.stringify(source)},"edits":[${all.join(",")}]}` })).source ?? "";
}

// read gives what stands in a text.
async function read(text: string): Promise<File> {
  return ((await call<CheckedFlow>("/api/flows/validate", { raw: text, type: "application/yaml" })).file ?? {}) as File;
}

// useChecked tells what the server says of the text; it stays until the next answer.
// shown ends when what it says is of that text, or of a later one.
function useChecked(doc: Document): [CheckedFlow | undefined, (text: string) => Promise<void>] {
  const [checked, set] = useState<CheckedFlow>();
  const of = useRef<string | undefined>(undefined);
  const waiting = useRef<(() => void)[]>([]);
  const text = doc.text;
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      call<CheckedFlow>("/api/flows/validate", { raw: text, type: "application/yaml", signal: stop.signal })
        .then(set, (e) => e instanceof Failed && complain(e))
        .then(() => {
          if (stop.signal.aborted || text !== doc.text) return; // a later one is asked for
          of.current = text;
          for (const done of waiting.current.splice(0)) done();
        });
    }, checked ? 150 : 0);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [text]);
  const shown = (wanted: string) => new Promise<void>((done) => (of.current === wanted && wanted === doc.text ? done() : waiting.current.push(done)));
  return [checked, shown];
}
