import { useCallback, useEffect, useMemo, useRef, useState } from "react";
import { call, Failed } from "../api/client";
import { useResource } from "../api/resource";
import type { CheckedFlow, Flow, FlowList, FlowProblem, FlowText, PutFlow, TriedFlow, WorkerList } from "../api/types";
import { useT } from "../i18n";
import { useMay } from "../roles";
import { go, href, useQuery } from "../router";
import { Empty, Head, Loading, Trouble } from "../ui/bits";
import { complain, say } from "../ui/toast";
import { DryRun } from "./dryrun";
import { add, connect, remove, unlink, type File } from "./edits";
import { oneOrList, type Fields, type SetEdit } from "./fields";
import { Graph, leads } from "./graph";
import { FlowFields, Inspector } from "./inspector";
import { Palette } from "./palette";
import { sampleOf } from "./sample";

export interface Edit {
  path: string;
  value?: unknown; // absent: the field is taken out
}

// Designer changes a flow. The file is the document: the drawing, the outline, the form
// and the text are views of it, each change is made by the server in the file, where
// comments and order stay, and undo goes from text to text.
export function Designer({ name }: { name: string }) {
  const t = useT();
  const may = useMay();
  const stored = useResource<Flow>("/api/flows/" + encodeURIComponent(name));
  const [doc, setDoc] = useState<{ texts: string[]; at: number }>();
  useEffect(() => {
    if (doc) return;
    if (stored.data) setDoc({ texts: [stored.data.source ?? ""], at: 0 });
    else if (stored.error?.code === "not_found") setDoc({ texts: [`flow: ${name}\n`], at: 0 });
  }, [stored.data, stored.error]);
  if (!may.operate) return <Empty title={t("error.unauthorized")}><a href={href(["flows", name])}>{name}</a></Empty>;
  if (!doc) return stored.error ? <Trouble error={stored.error} /> : <Loading />;
  return <Desk name={name} doc={doc} setDoc={setDoc} saved={stored.data?.source} />;
}

type Doc = { texts: string[]; at: number };

function Desk({ name, doc, setDoc, saved }: { name: string; doc: Doc; setDoc: (f: (d?: Doc) => Doc | undefined) => void; saved?: string }) {
  const t = useT();
  const text = doc.texts[doc.at];
  const put = useCallback((next: string) => setDoc((d) => d && (next === d.texts[d.at] ? d : { texts: [...d.texts.slice(0, d.at + 1), next].slice(-200), at: Math.min(d.at + 1, 199) })), []);
  const undo = () => setDoc((d) => d && { ...d, at: Math.max(0, d.at - 1) });
  const redo = () => setDoc((d) => d && { ...d, at: Math.min(d.texts.length - 1, d.at + 1) });
  const checked = useChecked(text);
  const workers = useResource<WorkerList>("/api/workers");
  const flows = useResource<FlowList>("/api/flows", { limit: 200 });
  const [step, choose] = useQuery("step");
  const [pane, setPane] = useQuery("pane");
  const busy = useRef(Promise.resolve());
  const latest = useRef(text);
  latest.current = text;
  const edit: SetEdit = useCallback((wanted) => {
    // One after the other: each is made in what the one before gave, and what depends on
    // the file is worked out when it is as the one before left it.
    busy.current = busy.current.then(async () => {
      try {
        const edits = typeof wanted === "function" ? wanted(await read(latest.current)) : wanted;
        if (edits.length === 0) return;
        const v = await call<FlowText>("/api/flows/edit", { body: { source: latest.current, edits } });
        latest.current = v.source ?? "";
        put(latest.current);
      } catch (e) {
        complain(e);
      }
    });
    return busy.current;
  }, []);
  useKeys(undo, redo);
  const steps = checked?.steps ?? [];
  const file = (checked?.file ?? {}) as File & Fields;
  const [tried, show] = useState<TriedFlow>();
  useEffect(() => show(undefined), [text]);
  const editing = {
    connect: (from: string, to: string) => void (leads(steps, to, from) || edit((now) => connect(now, from, to))),
    unlink: (from: string, to: string) => void edit((now) => unlink(now, from, to)),
    remove: (id: string) => void edit((now) => remove(now, id)).then(() => choose("")),
    add: (fields: Fields, base: string, after?: string) => {
      let added = "";
      void edit((now) => {
        const { id, edits } = add(now, fields, base, after);
        added = id;
        return edits;
      }).then(() => choose(added));
    },
    drop: (what: string, onto?: string) => { const v = JSON.parse(what) as { fields: Fields; base: string }; editing.add(v.fields, v.base, onto); },
  };
  const wrong = useMemo(() => new Set(checked?.problems.filter((p) => !p.warning).map((p) => p.path.split(".")[1]).filter((s) => s !== undefined)), [checked]);
  const publish = async () => {
    try {
      const v = await call<PutFlow>("/api/flows/" + encodeURIComponent(name), { method: "PUT", raw: text, type: "application/yaml" });
      say(v.created ? t("flow.published", { version: v.version }) : t("flow.same", { version: v.version }));
      go(href(["flows", name]));
    } catch (e) {
      complain(e);
    }
  };
  return (
    <>
      <Head title={name} lead={<><a href={href(["flows"])}>{t("nav.flows")}</a>{saved !== undefined && <> / <a href={href(["flows", name])}>{name}</a></>}</>}>
        <button type="button" onClick={undo} disabled={doc.at === 0} title="Ctrl+Z">{t("undo")}</button>
        <button type="button" onClick={redo} disabled={doc.at === doc.texts.length - 1} title="Ctrl+Shift+Z">{t("redo")}</button>
        <button type="button" onClick={() => setPane(pane === "yaml" ? "" : "yaml")} aria-pressed={pane === "yaml"}>YAML</button>
        <button type="button" onClick={() => setPane(pane === "dry" ? "" : "dry")} aria-pressed={pane === "dry"}>{t("dry")}</button>
        <button type="button" class="main" disabled={!checked?.valid} onClick={publish}>{t("flow.publish")}</button>
      </Head>
      <div class="designer">
        <Palette workers={workers.data?.items ?? []} flows={flows.data?.items.map((f) => f.name).filter((n) => n !== name) ?? []} after={step} add={(fields, base) => editing.add(fields, base, step || undefined)} />
        {pane === "yaml" ? <Text text={text} put={put} /> : steps.length > 0 ? <Graph steps={steps} run={tried?.steps} chosen={step} choose={(id) => choose(id ?? "")} edit={editing} wrong={wrong} /> : <Blank drop={editing.drop} />}
        <div class="inspector card">
          {step && file.steps?.[step] ? (
            <Inspector key={step} id={step} fields={file.steps[step]} steps={steps} edit={edit} link={(all) => void edit([{ path: `steps.${step}.needs`, value: oneOrList(all) }])} remove={() => editing.remove(step)} />
          ) : (
            <>
              <h2>{t("flow.steps")}</h2>
              {steps.length === 0 ? <p class="dim">{t("flow.nosteps")}</p> : <ul>{steps.map((s) => <li key={s.id}><button type="button" class="quiet small" onClick={() => choose(s.id)}>{s.id}</button> <span class="dim">{s.does}</span></li>)}</ul>}
              <FlowFields file={file} edit={edit} />
            </>
          )}
        </div>
      </div>
      {pane === "dry" && <DryRun text={text} steps={steps} first={sampleOf(file.input)} show={show} tried={tried} />}
      <Problems problems={steps.length === 0 && text.length < 200 ? [] : (checked?.problems ?? [])} choose={choose} ids={steps.map((s) => s.id)} />
    </>
  );
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

// read gives what stands in a text.
async function read(text: string): Promise<File> {
  return ((await call<CheckedFlow>("/api/flows/validate", { raw: text, type: "application/yaml" })).file ?? {}) as File;
}

// useChecked tells what the server says of the text; it stays until the next answer.
function useChecked(text: string): CheckedFlow | undefined {
  const [checked, set] = useState<CheckedFlow>();
  useEffect(() => {
    const stop = new AbortController();
    const timer = setTimeout(() => {
      call<CheckedFlow>("/api/flows/validate", { raw: text, type: "application/yaml", signal: stop.signal }).then(set, (e) => e instanceof Failed && complain(e));
    }, checked ? 150 : 0);
    return () => { clearTimeout(timer); stop.abort(); };
  }, [text]);
  return checked;
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
  const [own, setOwn] = useState(text);
  useEffect(() => setOwn(text), [text]);
  useEffect(() => {
    if (own === text) return;
    const timer = setTimeout(() => put(own), 500); // a pause of writing is one step to undo
    return () => clearTimeout(timer);
  }, [own]);
  return <textarea class="code graph" spellcheck={false} aria-label="YAML" value={own} onInput={(e) => setOwn(e.currentTarget.value)} onBlur={() => put(own)} />;
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
