import { useMemo, useState } from "react";
import { call, Failed } from "../api/client";
import { useResource } from "../api/resource";
import type { Flow, FlowDiff, FlowVersion, FlowVersions, PutFlow, ReleasedFlow } from "../api/types";
import { useT } from "../i18n";
import { useMay } from "../roles";
import { href, useQuery } from "../router";
import { Dialog, Loading, Moment, Trouble } from "../ui/bits";
import { diff } from "../ui/diff";
import { complain, say } from "../ui/toast";
import { Graph } from "./graph";
import type { Mark } from "./nodes";

// Versions are listed with who stored and who approved them; two are compared, an old one
// is gone back to.
export function Versions({ flow }: { flow: Flow }) {
  const t = useT();
  const may = useMay();
  const name = flow.name;
  const r = useResource<FlowVersions>(`/api/flows/${encodeURIComponent(name)}/versions`, { limit: 50 });
  const [from, setFrom] = useQuery("from");
  const [to, setTo] = useQuery("to");
  const [back, goBack] = useState<number>();
  if (!r.data) return r.error ? <Trouble error={r.error} /> : <Loading />;
  const release = async (v: FlowVersion) => {
    try {
      await call<ReleasedFlow>(`/api/flows/${encodeURIComponent(name)}/versions/${v.version}/release`, { body: {} });
      say(t("release.done", { version: v.version }));
      r.reload();
    } catch (e) {
      complain(e);
    }
  };
  return (
    <>
      {flow.fourEyes && <p class="note">{t("release.eyes")}</p>}
      {from && to && <Compare key={from + ":" + to} name={name} from={from} to={to} />}
      <div class="scroll">
        <table>
          <thead><tr><th>{t("flow.version")}</th><th>{t("diff.compare")}</th><th>{t("release.by")}</th><th>{t("diff.what")}</th><th /></tr></thead>
          <tbody>
            {r.data.items.map((v) => (
              <tr key={v.version}>
                <td><a href={href(["flows", name], { version: String(v.version) })}>{t("flow.versionn", { n: v.version })}</a></td>
                <td>
                  <label class="tick"><input type="radio" name="from" aria-label={t("diff.from", { n: v.version })} checked={from === String(v.version)} onChange={() => setFrom(String(v.version))} />−</label>
                  <label class="tick"><input type="radio" name="to" aria-label={t("diff.to", { n: v.version })} checked={to === String(v.version)} onChange={() => setTo(String(v.version))} />+</label>
                </td>
                <td>{v.release.author} <span class="dim">{v.release.at && <Moment at={v.release.at} />}</span>{v.release.reason && <div>{v.release.reason}</div>}{v.release.approvedBy ? <div class="good">✓ {t("release.approved", { who: v.release.approvedBy })}</div> : flow.fourEyes && <div class="dim">{t("release.open")}</div>}</td>
                <td>{v.changes.length === 0 ? <span class="dim">{v.version === 1 ? t("flow.first") : "–"}</span> : v.changes.slice(0, 20).map((c, i) => <div key={i}><b>{c.step}</b> {c.kind}: {c.text}</div>)}</td>
                <td>
                  {may.operate && v.version !== flow.latest && <button type="button" class="small" onClick={() => goBack(v.version)}>{t("restore")}</button>}
                  {may.operate && !v.release.approvedBy && v.release.author && flow.fourEyes && <button type="button" class="small" onClick={() => void release(v)}>{t("release")}</button>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {back !== undefined && <Restore name={name} version={back} close={() => goBack(undefined)} done={r.reload} />}
    </>
  );
}

function Restore({ name, version, close, done }: { name: string; version: number; close: () => void; done: () => void }) {
  const t = useT();
  const [error, setError] = useState<Failed>();
  return (
    <Dialog title={t("restore.title", { version })} close={close}>
      <form
        class="form"
        onSubmit={async (e) => {
          e.preventDefault();
          try {
            const v = await call<PutFlow>(`/api/flows/${encodeURIComponent(name)}/versions/${version}/restore`, { body: { reason: String(new FormData(e.currentTarget).get("reason")) } });
            say(v.created ? t("flow.published", { version: v.version }) : t("flow.same", { version: v.version }));
            close();
            done();
          } catch (err) {
            if (err instanceof Failed) setError(err);
          }
        }}
      >
        <p class="dim">{t("restore.lead")}</p>
        <label>{t("discard.reason")}<input name="reason" required autoFocus autoComplete="off" maxLength={1024} /></label>
        <Trouble error={error} />
        <div class="acts"><button type="submit" class="main">{t("restore")}</button></div>
      </form>
    </Dialog>
  );
}

// Compare draws what is in one of two versions only, or is otherwise in them, and shows the
// lines of their files.
function Compare({ name, from, to }: { name: string; from: string; to: string }) {
  const t = useT();
  const path = "/api/flows/" + encodeURIComponent(name);
  const a = useResource<Flow>(path, { version: from });
  const b = useResource<Flow>(path, { version: to });
  const d = useResource<FlowDiff>(path + "/diff", { from, to });
  const steps = useMemo(() => (a.data && b.data ? [...b.data.steps, ...a.data.steps.filter((s) => !b.data!.steps.some((o) => o.id === s.id))] : []), [a.data, b.data]);
  const marks = useMemo(() => new Map((d.data?.changes ?? []).filter((c) => c.step).map((c) => [c.step!, c.kind as Mark])), [d.data]);
  const lines = useMemo(() => diff(a.data?.source ?? "", b.data?.source ?? ""), [a.data, b.data]);
  const error = a.error ?? b.error ?? d.error;
  if (error || !a.data || !b.data || !d.data) return error ? <Trouble error={error} /> : <Loading />;
  return (
    <section>
      <h2>{t("diff.title", { from, to })}</h2>
      <Graph steps={steps} marks={marks} />
      {d.data.changes.length === 0 ? <p class="dim">{t("diff.same")}</p> : <ul>{d.data.changes.map((c, i) => <li key={i}><b>{c.step}</b> {c.kind}: {c.text}</li>)}</ul>}
      <pre class="diff" tabIndex={0} aria-label={t("diff.lines")}>{lines.map((l, i) => <div key={i} class={l.sign === "+" ? "plus" : l.sign === "-" ? "minus" : ""}>{l.sign} {l.text}</div>)}</pre>
    </section>
  );
}
