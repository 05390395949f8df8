import { useEffect, useState } from "react";
import { call } from "../api/client";
import { print } from "../api/json";
import type { CheckedFlow, FlowStep } from "../api/types";
import { useT } from "../i18n";
import { kept } from "../store";
import { complain, say } from "../ui/toast";
import { remove, type File } from "./edits";
import type { Fields, SetEdit } from "./fields";
import { addNote, arrange, copied, found, group, paste } from "./layout";

// What is done with several steps at once, and the bar with which it is done.

const inField = (e: Event) => /^(INPUT|TEXTAREA|SELECT)$/.test((e.target as HTMLElement)?.tagName ?? "");

// Clipboard is what its buttons do; its keys do the same.
export interface Clipboard {
  take: (cut: boolean) => void;
  paste: () => Promise<void>;
}

const hasSteps = (text: string) => /["']?steps["']?\s*:/.test(text);

// useClipboard copies, cuts and pastes steps as text, also between flows. The buttons keep
// the text here too: a browser may give the system's clipboard to keys alone, and without
// TLS has none.
export function useClipboard(picked: string[], file: File, edit: SetEdit, pick: (ids: string[]) => void): Clipboard {
  const t = useT();
  const take = (cut: boolean) => {
    const text = print(copied(file, picked));
    kept.set("steps", text);
    if (cut) void picked.reduce((last, id) => last.then(() => edit((now) => (now.steps?.[id] ? remove(now, id) : []))), Promise.resolve(true)).then(() => pick([]));
    else say(t("desk.copied", { n: picked.length }));
    return text;
  };
  const put = (text: string) => void stepsIn(text).then(async (steps) => {
    let ids: string[] = [];
    const ok = await edit((now) => {
      const p = paste(now, steps);
      ids = p.ids;
      return p.edits;
    });
    if (ok) pick(ids);
  }, complain);
  useEffect(() => {
    const by = (cut: boolean) => (e: ClipboardEvent) => {
      if (inField(e) || picked.length === 0 || !getSelection()?.isCollapsed) return;
      e.preventDefault();
      e.clipboardData?.setData("text/plain", take(cut));
    };
    const insert = (e: ClipboardEvent) => {
      const text = e.clipboardData?.getData("text/plain") ?? "";
      if (inField(e) || !hasSteps(text)) return;
      e.preventDefault();
      put(text);
    };
    const keys = { copy: by(false), cut: by(true), paste: insert };
    for (const [k, f] of Object.entries(keys)) addEventListener(k as "copy", f);
    return () => { for (const [k, f] of Object.entries(keys)) removeEventListener(k as "copy", f); };
  }, [picked, file, edit]);
  return {
    take: (cut) => {
      const text = take(cut);
      void navigator.clipboard?.writeText(text).catch(() => {}); // then it is kept here alone
    },
    paste: async () => {
      const outside = await navigator.clipboard?.readText?.().catch(() => "");
      const text = outside && hasSteps(outside) ? outside : kept.get("steps");
      if (text) put(text);
      else say(t("desk.nothing"));
    },
  };
}

// stepsIn reads what was copied, by the server, so that it may be any YAML.
async function stepsIn(text: string): Promise<Record<string, Fields>> {
  const v = await call<CheckedFlow>("/api/flows/validate", { raw: text, type: "application/yaml" });
  return ((v.file as File | undefined)?.steps ?? {}) as Record<string, Fields>;
}

export function Bar({ steps, file, picked, edit, find, pick, clipboard }: { clipboard: Clipboard; steps: FlowStep[]; file: File; picked: string[]; edit: SetEdit; find: (id: string) => void; pick: (ids: string[]) => void }) {
  const t = useT();
  const [text, setText] = useState("");
  const list = found(steps, file, text).slice(0, 8);
  const moved = Object.keys((file.layout as { steps?: object } | undefined)?.steps ?? {}).length > 0;
  const go = (id: string) => { setText(""); find(id); };
  return (
    <div class="row desk" role="toolbar" aria-label={t("desk")}>
      <div class="expression">
        <input type="search" aria-label={t("desk.find")} placeholder={t("desk.find")} value={text} autoComplete="off" onInput={(e) => setText(e.currentTarget.value)} onKeyDown={(e) => { if (e.key === "Enter" && list[0]) go(list[0].id); if (e.key === "Escape") setText(""); }} />
        {list.length > 0 && <ul class="offers">{list.map((s) => <li key={s.id}><button type="button" class="quiet small" onClick={() => go(s.id)}>{s.id}</button> <span class="dim">{s.title ?? s.does}</span></li>)}</ul>}
        {text !== "" && list.length === 0 && <p class="preview" role="status">{t("desk.notfound")}</p>}
      </div>
      <button type="button" class="small" disabled={picked.length === 0} title="Ctrl+X" onClick={() => clipboard.take(true)}>{t("desk.cut")}</button>
      <button type="button" class="small" disabled={picked.length === 0} title="Ctrl+C" onClick={() => clipboard.take(false)}>{t("desk.copy")}</button>
      <button type="button" class="small" title="Ctrl+V" onClick={() => void clipboard.paste()}>{t("desk.paste")}</button>
      <button type="button" class="small" onClick={() => void edit(addNote(t("layout.note"), { x: -240, y: 20 }))}>{t("layout.note.add")}</button>
      <button type="button" class="small" disabled={picked.length === 0} onClick={() => void edit(group(picked, t("layout.group"))).then((ok) => ok && pick([]))}>{t("layout.group.make")}</button>
      <button type="button" class="small" disabled={!moved} onClick={() => void edit(arrange)}>{t("layout.arrange")}</button>
      {picked.length > 1 && <span class="dim" role="status">{t("desk.picked", { n: picked.length })}</span>}
    </div>
  );
}
