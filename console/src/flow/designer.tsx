import { useEffect, useMemo, useState } from "react";
import { call } from "../api/client";
import { useResource } from "../api/resource";
import { print } from "../api/json";
import type { Flow, FlowList, FlowProblem, HandlerList, PutFlow, TriedFlow, WorkerList } from "../api/types";
import { useT } from "../i18n";
import { useMay } from "../roles";
import { go, href, useQuery } from "../router";
import { Ago, Empty, Head, Loading, Trouble } from "../ui/bits";
import { useDraft } from "../ui/draft";
import { complain, say } from "../ui/toast";
import { Export } from "./cross";
import { Bar, useClipboard } from "./desk";
import { useDocument } from "./document";
import { DryRun } from "./dryrun";
import { add, connect, remove, unlink, type File } from "./edits";
import { list, oneOrList, toggle, type Fields } from "./fields";
import { Sampled } from "./expression";
import { Graph, leads } from "./graph";
import { FlowFields, Inspector } from "./inspector";
import { changeGroup, move, ungroup, writeNote, type Layout } from "./layout";
import { Palette } from "./palette";
import { sampleOf } from "./sample";

// Designer changes a flow. The file is the document: the drawing, the outline, the form
// and the text are views of it, each change is made by the server in the file, where
// comments and order stay, and undo goes from text to text.
export function Designer({ name }: { name: string }) {
  const t = useT();
  const may = useMay();
  const stored = useResource<Flow>("/api/flows/" + encodeURIComponent(name));
  const [first, setFirst] = useState<string>();
  useEffect(() => {
    if (first !== undefined) return;
    if (stored.data) setFirst(stored.data.source ?? "");
    else if (stored.error?.code === "not_found") setFirst(`flow: ${name}\n`);
  }, [stored.data, stored.error]);
  if (!may.operate) return <Empty title={t("error.unauthorized")}><a href={href(["flows", name])}>{name}</a></Empty>;
  if (first === undefined) return stored.error ? <Trouble error={stored.error} /> : <Loading />;
  return <Desk key={name} name={name} stored={first} saved={stored.data?.source !== undefined} />;
}

function Desk({ name, stored, saved }: { name: string; stored: string; saved: boolean }) {
  const t = useT();
  const { doc, checked, edit, then } = useDocument(name, stored);
  const text = doc.text;
  const undo = () => void then(() => doc.undo());
  const redo = () => void then(() => doc.redo());
  const workers = useResource<WorkerList>("/api/workers");
  const handlers = useResource<HandlerList>("/api/handlers").data?.items ?? [];
  const flows = useResource<FlowList>("/api/flows", { limit: 200 });
  const [step, setStep] = useQuery("step");
  const [several, pickAll] = useState<string[]>([]);
  const choose = (id: string) => { pickAll([]); setStep(id); };
  const pick = (ids: string[]) => { if (ids.length > 1) setStep(""); else setStep(ids[0] ?? ""); pickAll(ids.length > 1 ? ids : []); };
  const [goto, find] = useState<{ id: string }>();
  const [pane, setPane] = useQuery("pane");
  const [exporting, setExporting] = useState(false);
  useKeys(undo, redo);
  const steps = checked?.steps ?? [];
  const file = (checked?.file ?? {}) as File;
  const [tried, show] = useState<TriedFlow>();
  useEffect(() => show(undefined), [text]);
  const picked = several.length > 0 ? several.filter((id) => file.steps?.[id]) : step && file.steps?.[step] ? [step] : [];
  const clipboard = useClipboard(picked, file, edit, pick);
  const [input, setInput] = useState<string>(); // of the dry run
  const [outputs, setOutputs] = useState<Record<string, string>>({});
  useEffect(() => tried && setOutputs(outputsOf(tried)), [tried]);
  const first = sampleOf(file.input);
  const sample = useMemo(() => ({ text, step, input: input ?? first, outputs }), [text, step, input, first, outputs]);
  const editing = {
    connect: (from: string, to: string) => void (leads(steps, to, from) || edit((now) => connect(now, from, to))),
    unlink: (from: string, to: string) => void edit((now) => unlink(now, from, to)),
    remove: (id: string) => void edit((now) => remove(now, id)).then((ok) => ok && choose("")),
    need: (id: string, from: string, on: boolean) => void edit((now) => [{ path: `steps.${id}.needs`, value: oneOrList(toggle(list(now.steps?.[id]?.needs), from, on)) }]),
    rename: (id: string, to: string) => edit((now) => (now.steps?.[id] && to !== id ? [{ path: "steps." + id, rename: to }] : [])).then((ok) => { if (ok) choose(to); return ok; }),
    add: (fields: Fields, base: string, after?: string) => {
      let added = "";
      void edit((now) => {
        const { id, edits } = add(now, fields, base, after);
        added = id;
        return edits;
      }).then((ok) => ok && !document.activeElement?.closest(".inspector") && choose(added)); // who writes meanwhile is left alone
    },
    move: (points: Parameters<typeof move>[0]) => edit(move(points)),
    pick,
    write: (id: string, note: string) => edit(writeNote(id, note)),
    group: (id: string, more: { title?: string; collapsed?: boolean }) => edit(changeGroup(id, more)),
    ungroup: (id: string) => void edit(ungroup(id)),
    drop: (what: string, onto?: string) => { const v = JSON.parse(what) as { fields: Fields; base: string }; editing.add(v.fields, v.base, onto); },
  };
  const wrong = useMemo(() => new Set(checked?.problems.filter((p) => !p.warning).map((p) => p.path.split(".")[1]).filter((s) => s !== undefined)), [checked]);
  const publish = () => void then(async () => { // with what was written last
    try {
      const v = await call<PutFlow>("/api/flows/" + encodeURIComponent(name), { method: "PUT", raw: doc.text, type: "application/yaml" });
      doc.forget();
      say(v.created ? t("flow.published", { version: v.version }) : t("flow.same", { version: v.version }));
      go(href(["flows", name]));
    } catch (e) {
      complain(e);
    }
  });
  return (
    <>
      <Head title={name} lead={<><a href={href(["flows"])}>{t("nav.flows")}</a>{saved && <> / <a href={href(["flows", name])}>{name}</a></>}</>}>
        <button type="button" onClick={undo} disabled={!doc.undoes} title="Ctrl+Z">{t("undo")}</button>
        <button type="button" onClick={redo} disabled={!doc.redoes} title="Ctrl+Shift+Z">{t("redo")}</button>
        <button type="button" onClick={() => setPane(pane === "yaml" ? "" : "yaml")} aria-pressed={pane === "yaml"}>YAML</button>
        <button type="button" onClick={() => setPane(pane === "dry" ? "" : "dry")} aria-pressed={pane === "dry"}>{t("dry")}</button>
        <button type="button" disabled={!checked?.valid} onClick={() => setExporting(true)}>{t("cross.export")}</button>
        <button type="button" class="main" disabled={!checked?.valid} onClick={publish}>{t("flow.publish")}</button>
      </Head>
      {doc.restored && text !== stored && <div class="note" role="status">{t("flow.draft")} <Ago at={doc.restored} /> <button type="button" class="small" onClick={() => void then(() => doc.put(stored))}>{t("flow.draft.leave")}</button></div>}
      {pane !== "yaml" && <Bar clipboard={clipboard} steps={steps} file={file} picked={picked} edit={edit} pick={pick} find={(id) => { choose(id); find({ id }); }} />}
      <div class="designer">
        <Palette workers={workers.data?.items ?? []} handlers={handlers} flows={flows.data?.items.map((f) => f.name).filter((n) => n !== name) ?? []} after={step} add={(fields, base) => editing.add(fields, base, step || undefined)} />
        {pane === "yaml" ? <Text text={text} put={(s) => doc.put(s)} /> : steps.length > 0 ? <Graph steps={steps} run={tried?.steps} chosen={step} choose={(id) => choose(id ?? "")} edit={editing} wrong={wrong} layout={file.layout as Layout | undefined} picked={several} goto={goto} /> : <Blank drop={editing.drop} />}
        <Sampled.Provider value={sample}><div class="inspector card">
          {step && file.steps?.[step] ? (
            <Inspector key={step} id={step} fields={file.steps[step]} steps={steps} handlers={handlers} edit={edit} need={(from, on) => editing.need(step, from, on)} rename={(to) => editing.rename(step, to)} remove={() => editing.remove(step)} />
          ) : (
            <>
              <h2>{t("flow.steps")}</h2>
              {steps.length === 0 ? <p class="dim">{t("flow.nosteps")}</p> : <ul>{steps.map((s) => <li key={s.id}><input type="checkbox" aria-label={t("desk.pick", { step: s.id })} checked={several.includes(s.id)} onChange={(e) => pickAll(e.currentTarget.checked ? [...several, s.id] : several.filter((o) => o !== s.id))} /> <button type="button" class="quiet small" onClick={() => choose(s.id)}>{s.id}</button> <span class="dim">{s.does}</span></li>)}</ul>}
              <FlowFields file={file} edit={edit} />
            </>
          )}
        </div></Sampled.Provider>
      </div>
      {exporting && <Export name={name} source={(use) => void then(() => use(doc.text))} close={() => setExporting(false)} />}
      {pane === "dry" && <DryRun text={(use) => void then(() => use(doc.text))} steps={steps} input={input ?? first} setInput={setInput} show={show} tried={tried} />}
      <Problems problems={steps.length === 0 && text.length < 200 ? [] : (checked?.problems ?? [])} choose={choose} ids={steps.map((s) => s.id)} />
    </>
  );
}

// outputsOf is what the steps of a dry run gave.
function outputsOf(tried: TriedFlow): Record<string, string> {
  return Object.fromEntries(tried.steps.filter((s) => s.output !== undefined).map((s) => [s.id, print(s.output)]));
}

function Blank({ drop }: { drop: (what: string) => void }) {
  const t = useT();
  return (
    <div class="empty graph" onDragOver={(e) => e.preventDefault()} onDrop={(e) => { e.preventDefault(); const what = e.dataTransfer?.getData("text/plain"); if (what) drop(what); }}>
      <h2>{t("flow.blank")}</h2>
      <p>{t("flow.blank.lead")}</p>
    </div>
  );
}

function useKeys(undo: () => void, redo: () => void) {
  useEffect(() => {
    const listen = (e: KeyboardEvent) => {
      if (!(e.ctrlKey || e.metaKey) || /^(INPUT|TEXTAREA|SELECT)$/.test((e.target as HTMLElement).tagName)) return;
      const key = e.key.toLowerCase();
      if (key === "z" && !e.shiftKey) undo();
      else if (key === "y" || (key === "z" && e.shiftKey)) redo();
      else return;
      e.preventDefault();
    };
    addEventListener("keydown", listen);
    return () => removeEventListener("keydown", listen);
  }, []);
}

function Text({ text, put }: { text: string; put: (s: string) => void }) {
  const { text: own, field, leave } = useDraft(text, (s) => { put(s); return Promise.resolve(true); });
  useEffect(() => {
    const timer = setTimeout(leave, 500); // a pause of writing is one step to undo
    return () => clearTimeout(timer);
  }, [own]);
  return <textarea class="code graph" spellcheck={false} aria-label="YAML" {...field} />;
}

function Problems({ problems, choose, ids }: { problems: FlowProblem[]; choose: (id: string) => void; ids: string[] }) {
  const t = useT();
  return (
    <section>
      <h2>{t("flow.problems")}</h2>
      {problems.length === 0 ? <p class="dim" role="status">{t("flow.noproblems")}</p> : (
        <ul class="problems card">
          {problems.map((p, i) => {
            const id = p.path.split(".")[1];
            return (
              <li key={i} class={p.warning ? "" : "bad"}>
                {ids.includes(id) ? <button type="button" class="small quiet" onClick={() => choose(id)}>{p.line}:{p.column}</button> : <code>{p.line}:{p.column}</code>} {p.text} <span class="dim">{p.code}</span>
              </li>
            );
          })}
        </ul>
      )}
    </section>
  );
}
