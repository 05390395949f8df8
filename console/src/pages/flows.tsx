import { useEffect, useState } from "react";
import { call, Failed } from "../api/client";
import { parse, print } from "../api/json";
import { useResource } from "../api/resource";
import type { Flow, FlowList, RunInfo, RunList, StartedRun } from "../api/types";
import { Export, Import } from "../flow/cross";
import { Designer } from "../flow/designer";
import { Graph } from "../flow/graph";
import type { Layout } from "../flow/layout";
import { HeatMap } from "../flow/past";
import { RunState } from "../flow/runstate";
import { sampleOf, type Schema } from "../flow/sample";
import { SchemaForm, within } from "../flow/schemaform";
import { Versions } from "../flow/versions";
import { useT } from "../i18n";
import { useMay } from "../roles";
import { go, href, usePlace, useQuery } from "../router";
import { wrongJson } from "../ui/addjob";
import { Ago, Dialog, Empty, Head, Loading, Num, Trouble } from "../ui/bits";

export default function Page({ rest }: { rest: string[] }) {
  if (rest[0] === undefined) return <All />;
  if (rest[1] === "edit") return <Designer key={rest[0]} name={rest[0]} />;
  return <One key={rest[0]} name={rest[0]} />;
}

function All() {
  const t = useT();
  const may = useMay();
  const flows = useResource<FlowList>("/api/flows", { limit: 200 }, 10_000);
  const [state, setState] = useQuery("state");
  const runs = useResource<RunList>("/api/runs", { state, limit: 50 }, 2000);
  const [naming, setNaming] = useState(false);
  const [importing, setImporting] = useState(false);
  return (
    <>
      <Head title={t("nav.flows")} lead={t("flows.lead")}>
        {may.operate && !flows.error && <button type="button" onClick={() => setImporting(true)}>{t("cross.import")}</button>}
        {may.operate && !flows.error && <button type="button" class="main" onClick={() => setNaming(true)}>{t("flows.new")}</button>}
      </Head>
      <Trouble error={flows.error} />
      {!flows.data ? !flows.error && <Loading /> : flows.data.items.length === 0 ? <Empty title={t("flows.empty")} command="forebay flow run examples/flows/registration.yaml">{t("flows.empty.lead")}</Empty> : (
        <div class="scroll" data-rows>
          <table>
            <thead><tr><th>{t("flow")}</th><th class="wide">{t("flow.description")}</th><th class="r">{t("flow.steps")}</th><th class="r">{t("flow.version")}</th></tr></thead>
            <tbody>
              {flows.data.items.map((f) => (
                <tr key={f.name}><td><a href={href(["flows", f.name])}>{f.name}</a></td><td class="wide dim">{f.description}</td><td class="r"><Num n={f.steps} /></td><td class="r"><Num n={f.version} /></td></tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {runs.data && (runs.data.items.length > 0 || state) && (
        <section>
          <h2>{t("flow.runs")}</h2>
          <div class="chips" role="group" aria-label={t("job.state")}>
            {["", "running", "completed", "failed", "cancelled"].map((s) => <button key={s} type="button" class="chip" aria-pressed={state === s} onClick={() => setState(s)}>{s ? t(`run.${s as "running"}`) : t("all")}</button>)}
          </div>
          <Runs runs={runs.data.items} flow />
        </section>
      )}
      {importing && <Import close={() => setImporting(false)} />}
      {naming && (
        <Dialog title={t("flows.new")} close={() => setNaming(false)}>
          <form
            class="form"
            onSubmit={(e) => {
              e.preventDefault();
              go(href(["flows", String(new FormData(e.currentTarget).get("name")), "edit"]));
            }}
          >
            <label>{t("flow.name")}<input name="name" required autoFocus autoComplete="off" pattern="[a-zA-Z0-9_\-.]+" placeholder="registration" /></label>
            <div class="acts"><button type="submit" class="main">{t("flows.draw")}</button></div>
          </form>
        </Dialog>
      )}
    </>
  );
}

function Runs({ runs, flow }: { runs: RunInfo[]; flow?: boolean }) {
  const t = useT();
  if (runs.length === 0) return <p class="card dim">{t("flow.noruns")}</p>;
  return (
    <div class="scroll" data-rows>
      <table>
        <thead><tr><th>{t("job.state")}</th><th>{t("run")}</th>{flow && <th>{t("flow")}</th>}<th class="r wide">{t("flow.version")}</th><th class="wide">{t("job.what")}</th><th class="r">{t("job.started")}</th></tr></thead>
        <tbody>
          {runs.map((r) => (
            <tr key={r.runId}>
              <td><RunState run={r} /></td>
              <td class="id"><a href={href(["runs", r.runId])}>{r.runId}</a></td>
              {flow && <td>{r.flow}</td>}
              <td class="r wide num">{r.version}</td>
              <td class="wide what"><span class="bad">{r.failure && `${r.failure.step ?? ""} ${r.failure.message}`}</span></td>
              <td class="r"><Ago at={r.startedAt} /></td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function One({ name }: { name: string }) {
  const t = useT();
  const may = useMay();
  const path = "/api/flows/" + encodeURIComponent(name);
  const { query } = usePlace();
  const tab = query.get("tab") ?? "";
  const version = query.get("version") ?? "";
  const r = useResource<Flow>(path, { version });
  const [starting, setStarting] = useState(false);
  const [exporting, setExporting] = useState(false);
  const f = r.data;
  if (!f) return r.error ? (r.error.code === "not_found" ? <Empty title={t("flow.none", { name })}><a href={href(["flows"])}>{t("nav.flows")}</a></Empty> : <Trouble error={r.error} />) : <Loading />;
  const tabs = { "": t("flow.graph"), yaml: "YAML", heat: t("heatmap"), versions: t("flow.versions"), runs: t("flow.runs") };
  return (
    <>
      <Head title={f.name} lead={<><a href={href(["flows"])}>{t("nav.flows")}</a>{f.description && " / " + f.description}</>}>
        {may.operate && <button type="button" class="main" onClick={() => setStarting(true)}>{t("flow.start")}</button>}
        <button type="button" onClick={() => setExporting(true)}>{t("cross.export")}</button>
        {may.operate && <a class="button" href={href(["flows", name, "edit"])}>{t("edit")}</a>}
      </Head>
      {version && <div class="note">{t("flow.old", { version: f.version, latest: f.latest })}</div>}
      <nav class="tabs" aria-label={f.name}>
        {Object.entries(tabs).map(([k, label]) => <a key={k} href={href(["flows", name], { tab: k, version })} aria-current={tab === k ? "page" : undefined}>{label}</a>)}
      </nav>
      {tab === "" && <><Graph steps={f.steps} layout={f.layout as Layout | undefined} /><Steps f={f} /></>}
      {tab === "yaml" && <pre tabIndex={0} aria-label="YAML">{f.source}</pre>}
      {tab === "heat" && <HeatMap name={name} steps={f.steps} layout={f.layout as Layout | undefined} />}
      {tab === "versions" && <Versions flow={f} />}
      {tab === "runs" && <FlowRuns name={name} />}
      {exporting && <Export name={name} source={(use) => use(f.source ?? "")} close={() => setExporting(false)} />}
      {starting && <Start f={f} close={() => setStarting(false)} />}
    </>
  );
}

// Steps lists them; of many the first, until the drawing is there.
function Steps({ f }: { f: Flow }) {
  const t = useT();
  const [all, showAll] = useState(f.steps.length <= 40);
  useEffect(() => {
    if (all) return;
    const timer = setTimeout(() => requestIdleCallback(() => showAll(true), { timeout: 1000 }), 200);
    return () => clearTimeout(timer);
  }, []);
  return (
    <section>
      <h2>{t("flow.steps")}</h2>
      <div class="scroll">
        <table>
          <thead><tr><th>{t("flow.step")}</th><th>{t("flow.does")}</th><th class="wide">{t("flow.needs")}</th><th class="wide">{t("flow.when")}</th><th class="wide">{t("flow.onfailure")}</th></tr></thead>
          <tbody>{(all ? f.steps : f.steps.slice(0, 40)).map((s) => <tr key={s.id}><td><b>{s.title ?? s.id}</b></td><td>{s.does}</td><td class="wide">{s.needs?.join(", ") || "–"}</td><td class="wide"><code>{s.when}</code></td><td class="wide">{s.onFailure}</td></tr>)}</tbody>
        </table>
      </div>
    </section>
  );
}

function FlowRuns({ name }: { name: string }) {
  const r = useResource<RunList>(`/api/flows/${encodeURIComponent(name)}/runs`, { limit: 50 }, 2000);
  if (!r.data) return r.error ? <Trouble error={r.error} /> : <Loading />;
  return <Runs runs={r.data.items} />;
}

function Start({ f, close }: { f: Flow; close: () => void }) {
  const t = useT();
  const [input, setInput] = useState(sampleOf(f.input));
  const [error, setError] = useState<Failed>();
  const [key] = useState(() => crypto.randomUUID?.() ?? String(Math.random()));
  const wrong = wrongJson(input);
  return (
    <Dialog title={t("flow.start")} close={close}>
      <form
        class="form"
        onSubmit={async (e) => {
          e.preventDefault();
          setError(undefined);
          try {
            const s = await call<StartedRun>(`/api/flows/${encodeURIComponent(f.name)}/runs`, { raw: `{"version":${f.version},"input":${input}}`, key });
            close();
            go(href(["runs", s.runId]));
          } catch (err) {
            if (err instanceof Failed) setError(err);
          }
        }}
      >
        {f.input !== undefined && !wrong ? <SchemaForm name={t("flow.input")} schema={f.input as Schema} filled={{ plain: true, value: parse(input), set: (path, v) => { setInput(print(path === "" ? v : within(parse(input), path.split("."), v))); return Promise.resolve(true); } }} /> : <label>{t("flow.input")}<textarea class="code" rows={9} spellcheck={false} value={input} aria-invalid={!!wrong} autoFocus onInput={(e) => setInput(e.currentTarget.value)} /></label>}
        {wrong && <p class="bad" role="status">{wrong}</p>}
        <Trouble error={error} />
        <div class="acts"><button type="submit" class="main" disabled={!!wrong}>{t("flow.start")}</button></div>
      </form>
    </Dialog>
  );
}
