import { useState } from "react";
import { call, Failed } from "../api/client";
import type { CrossedFlow } from "../api/types";
import { useT } from "../i18n";
import { go, href } from "../router";
import { Dialog, Trouble } from "../ui/bits";
import { keepDraft } from "./document";

// Notes list what cannot cross to or from Open Workflow.
function Notes({ v }: { v: CrossedFlow }) {
  const t = useT();
  if (v.problems.length === 0) return <p role="status">{t("cross.all")}</p>;
  return (
    <>
      <h3>{t("cross.not")}</h3>
      <ul class="problems">{v.problems.map((p, i) => <li key={i} class={p.warning ? "" : "bad"}><code>{p.line}:{p.column}</code> {p.text}</li>)}</ul>
    </>
  );
}

// Export shows a flow as an Open Workflow document, what of it cannot cross, and saves it.
export function Export({ name, source, close }: { name: string; source: (use: (text: string) => void) => void; close: () => void }) {
  const t = useT();
  const [v, set] = useState<CrossedFlow>();
  const [error, setError] = useState<Failed>();
  useState(() => source((text) => void call<CrossedFlow>("/api/flows/export", { body: { source: text } }).then(set, (e) => e instanceof Failed && setError(e))));
  const save = () => {
    const url = URL.createObjectURL(new Blob([v!.source], { type: "application/yaml" }));
    Object.assign(document.createElement("a"), { href: url, download: name + ".openworkflow.yaml" }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10_000);
  };
  return (
    <Dialog title={t("cross.export")} close={close}>
      <Trouble error={error} />
      {v && <Notes v={v} />}
      {v?.source && <pre tabIndex={0} aria-label="Open Workflow" class="document">{v.source}</pre>}
      <div class="acts"><button type="button" class="main" disabled={!v?.source} onClick={save}>{t("cross.save")}</button></div>
    </Dialog>
  );
}

// Import reads a document and draws it as a flow that is not published yet.
export function Import({ close }: { close: () => void }) {
  const t = useT();
  const [text, setText] = useState("");
  const [v, set] = useState<CrossedFlow>();
  const [error, setError] = useState<Failed>();
  const read = async (source: string) => {
    setText(source);
    set(undefined);
    setError(undefined);
    try {
      if (source.trim()) set(await call<CrossedFlow>("/api/flows/import", { body: { source } }));
    } catch (e) {
      if (e instanceof Failed) setError(e);
    }
  };
  const draw = () => {
    const name = /^flow: "?([\w.-]+)/.exec(v!.source)?.[1] ?? "imported";
    keepDraft(name, v!.source);
    go(href(["flows", name, "edit"]));
  };
  return (
    <Dialog title={t("cross.import")} close={close}>
      <div class="form">
        <p class="dim">{t("cross.import.lead")}</p>
        <label>{t("cross.file")}<input type="file" accept=".yaml,.yml,.json" onChange={(e) => void e.currentTarget.files?.[0]?.text().then(read)} /></label>
        <label>{t("cross.text")}<textarea class="code" rows={8} spellcheck={false} value={text} onInput={(e) => void read(e.currentTarget.value)} /></label>
        <Trouble error={error} />
        {v && <Notes v={v} />}
        <div class="acts"><button type="button" class="main" disabled={!v?.source} onClick={draw}>{t("flows.draw")}</button></div>
      </div>
    </Dialog>
  );
}
