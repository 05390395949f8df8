import { useState } from "react";
import { print } from "../api/json";
import { wrongJson } from "../ui/addjob";
import type { Edit } from "./designer";
import type { File } from "./edits";

// Fields are those of a step in its file.
export type Fields = Record<string, unknown>;

// SetEdit makes changes. Those that depend on what stands in the file are asked for when
// all that were made before are in it.
export type SetEdit = (e: Edit[] | ((file: File) => Edit[])) => Promise<void>;

export function at(v: unknown, path: string): unknown {
  return path.split(".").reduce<unknown>((o, key) => (o && typeof o === "object" ? (o as Fields)[key] : undefined), v);
}

// change sets a field below a step; one that is emptied goes, and with the last of its
// map the map.
export function change(id: string, own: Fields, path: string, value: unknown): Edit[] {
  if (value === at(own, path)) return [];
  if (value === undefined) {
    for (let up = path.lastIndexOf("."); up > 0; up = path.lastIndexOf(".")) {
      const map = at(own, path.slice(0, up));
      if (!map || typeof map !== "object" || Object.keys(map).length > 1) break;
      path = path.slice(0, up);
    }
  }
  return [{ path: (id ? `steps.${id}.` : "") + path, value }];
}

export interface Own {
  id: string; // of the step; empty: the flow itself
  own: Fields;
  edit: SetEdit;
}

const shown = (v: unknown) => (v === undefined || v === null ? "" : typeof v === "object" ? print(v) : String(v));

// Line is a field of one line.
export function Line({ id, own, edit, path, name, hint, number, list, required }: Own & { path: string; name: string; hint?: string; number?: boolean; list?: string; required?: boolean }) {
  const now = shown(at(own, path));
  return (
    <label>{name}
      <input
        key={now} inputMode={number ? "decimal" : "text"} defaultValue={now} placeholder={hint} list={list} required={required} autoComplete="off" spellcheck={false}
        onChange={(e) => {
          const text = e.currentTarget.value.trim();
          if (text === "" && required) e.currentTarget.value = now;
          else void edit(change(id, own, path, text === "" ? undefined : number && text !== "" && Number.isFinite(Number(text)) ? Number(text) : text));
        }}
      />
    </label>
  );
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

// Whole is a field that is shown as JSON, its numbers as they are written. Emptied, it goes.
export function Whole({ id, own, edit, path, name, hint }: Own & { path: string; name: string; hint?: string }) {
  const value = at(own, path);
  const before = value === undefined ? "" : print(value);
  return <Text key={before} before={before} name={name} hint={hint} set={(text) => void edit(change(id, own, path, text === "" ? undefined : JSON.parse(text)))} />;
}

function Text({ before, name, hint, set }: { before: string; name: string; hint?: string; set: (text: string) => void }) {
  const [text, setText] = useState(before);
  const wrong = text.trim() === "" ? undefined : wrongJson(text);
  return (
    <label>{name}
      <textarea class="code" rows={Math.min(10, Math.max(2, before.split("\n").length))} spellcheck={false} placeholder={hint} value={text} aria-invalid={!!wrong} onInput={(e) => setText(e.currentTarget.value)} onBlur={() => !wrong && text !== before && set(text.trim())} />
      {wrong && <span class="bad">{wrong}</span>}
    </label>
  );
}

// Ticks choose steps.
export function Ticks({ name, all, chosen, disabled, set }: { name: string; all: string[]; chosen: string[]; disabled?: (id: string) => boolean; set: (ids: string[]) => void }) {
  return (
    <fieldset>
      <legend>{name}</legend>
      <div class="picks">
        {all.map((id) => (
          <label key={id} class="tick">
            <input type="checkbox" checked={chosen.includes(id)} disabled={!chosen.includes(id) && disabled?.(id)} onChange={(e) => set(e.currentTarget.checked ? [...chosen, id] : chosen.filter((c) => c !== id))} /> {id}
          </label>
        ))}
      </div>
    </fieldset>
  );
}

// list reads what may be one step or several; one is written as itself.
export function list(v: unknown): string[] {
  return Array.isArray(v) ? v.map(String) : typeof v === "string" && v !== "" ? [v] : [];
}

export function oneOrList(ids: string[]): string | string[] | undefined {
  return ids.length === 0 ? undefined : ids.length === 1 ? ids[0] : ids;
}
