import type { ReactNode } from "react";
import { parse, print } from "../api/json";
import { useDraft } from "../ui/draft";
import type { Edit, File } from "./edits";
import { Expression } from "./expression";
import type { Fields } from "./lists";

export { list, oneOrList, type Fields } from "./lists";

// SetEdit makes changes, and tells when they are made and shown: false, they were refused.
// Those that depend on what stands in the file are asked for when all that were made
// before are in it.
export type SetEdit = (e: Edit[] | ((file: File) => Edit[])) => Promise<boolean>;

export function at(v: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((o, key) => (o && typeof o === "object" ? (o as Fields)[key] : undefined), v);
}

// change sets a field of a step, or with an empty id of the flow; one that is emptied
// goes, and with the last of its map the map. A step that has gone is not made anew.
export function change(id: string, path: string, value: unknown): (file: File) => Edit[] {
  return (file) => {
    const own = id ? file.steps?.[id] : file;
    if (!own || value === at(own, path)) return [];
    let cut = path;
    if (value === undefined) {
      for (let up = cut.lastIndexOf("."); up > 0; up = cut.lastIndexOf(".")) {
        const map = at(own, cut.slice(0, up));
        if (!map || typeof map !== "object" || Object.keys(map).length > 1) break;
        cut = cut.slice(0, up);
      }
    }
    return [{ path: (id ? `steps.${id}.` : "") + cut, value }];
  };
}

// toggle puts one into a list, or takes it out.
export const toggle = (all: string[], one: string, on: boolean) => (on ? [...all.filter((a) => a !== one), one] : all.filter((a) => a !== one));

export interface Own {
  id: string; // of the step; empty: the flow itself
  own: Fields;
  edit: SetEdit;
}

const shown = (v: unknown) => (v === undefined || v === null ? "" : typeof v === "object" ? print(v) : String(v));

// Word is a field of one line that is what it is until it is left.
export function Word({ name, now, give, number, ...more }: { name: ReactNode; now: string; give: (text: string) => Promise<boolean> | undefined; number?: boolean; placeholder?: string; list?: string; required?: boolean }) {
  const { field, enter } = useDraft(now, (text) => give(text.trim()));
  return <label>{name}<input type="text" {...more} {...field} onKeyDown={enter} inputMode={number ? "decimal" : "text"} autoComplete="off" spellcheck={false} /></label>;
}

// Line is a field of a step of one line.
export function Line({ id, own, edit, path, name, hint, number, list, required }: Own & { path: string; name: string; hint?: string; number?: boolean; list?: string; required?: boolean }) {
  const give = (text: string) => {
    if (text === "") return required ? undefined : edit(change(id, path, undefined));
    return edit(change(id, path, number && Number.isFinite(Number(text)) ? Number(text) : text));
  };
  return <Word name={name} now={shown(at(own, path))} give={give} number={number} placeholder={hint} list={list} required={required} />;
}

// Expr is a field of a step with an expression, or a text that has some.
export function Expr({ id, own, edit, path, name, hint, kind = "expr", required }: Own & { path: string; name: string; hint?: string; kind?: "expr" | "value"; required?: boolean }) {
  const give = (text: string) => (text === "" && required ? undefined : edit(change(id, path, text === "" ? undefined : text)));
  return <Expression kind={kind} name={name} now={shown(at(own, path))} give={give} placeholder={hint} required={required} />;
}

// Choice is one of a few.
export function Choice({ name, value, options, set }: { name: string; value: string; options: [string, string][]; set: (v: string) => void }) {
  return (
    <label>{name}
      <select value={value} onChange={(e) => set(e.currentTarget.value)}>
        {options.map(([v, label]) => <option key={v} value={v}>{label}</option>)}
      </select>
    </label>
  );
}

// Whole is a field that is shown as JSON, its numbers as they are written. Emptied, it
// goes; what is no JSON stays as it is written until it is.
export function Whole({ id, own, edit, path, name, hint }: Own & { path: string; name: string; hint?: string }) {
  const value = at(own, path);
  const before = value === undefined ? "" : print(value);
  const give = (text: string) => edit(change(id, path, text.trim() === "" ? undefined : parse(text)));
  return <Expression kind="json" name={name} now={before} give={give} rows={Math.min(10, Math.max(2, before.split("\n").length))} placeholder={hint} />;
}

// Ticks choose steps; each is told alone, since others may be on their way.
export function Ticks({ name, all, chosen, disabled, set }: { name: string; all: string[]; chosen: string[]; disabled?: (id: string) => boolean; set: (id: string, on: boolean) => void }) {
  return (
    <fieldset>
      <legend>{name}</legend>
      <div class="picks">
        {all.map((id) => (
          <label key={id} class="tick">
            <input type="checkbox" checked={chosen.includes(id)} disabled={!chosen.includes(id) && disabled?.(id)} onChange={(e) => set(id, e.currentTarget.checked)} /> {id}
          </label>
        ))}
      </div>
    </fieldset>
  );
}
