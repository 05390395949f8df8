import { useState } from "react";
import { useResource } from "../api/resource";
import type { AuditEntry, AuditList } from "../api/types";
import { useT } from "../i18n";
import { useMay } from "../roles";
import { go, href, usePlace } from "../router";
import { Ago, Empty, Head, Loading, Trouble } from "../ui/bits";
import { Json } from "../ui/json";

const names = ["actor", "action", "since"] as const;

// The audit log: who changed what, when, how much of it and why.
export default function Page() {
  const t = useT();
  const may = useMay();
  const { query } = usePlace();
  const q = Object.fromEntries(names.map((n) => [n, query.get(n) ?? ""]));
  const before = query.get("before") ?? "";
  const page = useResource<AuditList>(may.admin ? "/api/audit" : null, { ...q, before, limit: 50 });
  const [open, setOpen] = useState<number>();
  const rows = page.data?.items ?? [];
  const filtered = names.some((n) => q[n]) || before;
  if (!may.admin) return <><Head title={t("nav.audit")} lead={t("audit.lead")} /><Empty title={t("error.unauthorized")}>{t("audit.admins")}</Empty></>;
  return (
    <>
      <Head title={t("nav.audit")} lead={t("audit.lead")} />
      <form key={names.map((n) => q[n]).join("\n")} class="fields" role="search" onSubmit={(e) => { e.preventDefault(); go(href(["audit"], Object.fromEntries([...new FormData(e.currentTarget)].map(([k, v]) => [k, String(v).trim()])))); }}>
        {names.map((n) => <label key={n}>{t(`audit.${n}`)}<input name={n} defaultValue={q[n]} placeholder={n === "since" ? "24h" : t("all")} autoComplete="off" spellcheck={false} {...(n === "action" ? { "data-search": true } : {})} /></label>)}
        <button type="submit" class="main">{t("show")}</button>
      </form>
      <Trouble error={page.error} />
      {page.loading && !page.data ? <Loading /> : rows.length > 0 ? (
        <div class="scroll" data-rows>
          <table>
            <thead><tr><th>{t("audit.action")}</th><th>{t("audit.actor")}</th><th class="wide">{t("audit.asked")}</th><th class="wide">{t("discard.reason")}</th><th class="r">{t("time")}</th><th class="r" /></tr></thead>
            <tbody>{rows.map((e) => <Row key={e.seq} e={e} open={open === e.seq} flip={() => setOpen(open === e.seq ? undefined : e.seq)} />)}</tbody>
          </table>
        </div>
      ) : !page.error && (filtered ? <Empty title={t("audit.nomatch")}><a href={href(["audit"])}>{t("jobs.clear")}</a></Empty> : <Empty title={t("audit.empty")} command="forebay queues pause mail">{t("audit.empty.lead")}</Empty>)}
      <div class="pager">
        {before && <a class="button" href={href(["audit"], q)}>{t("page.first")}</a>}
        {page.data?.next && <a class="button" rel="next" href={href(["audit"], { ...q, before: String(page.data.next) })}>{t("page.next")}</a>}
      </div>
    </>
  );
}

function said(v?: Record<string, unknown>): string {
  return Object.entries(v ?? {}).map(([k, x]) => `${k}:${typeof x === "object" ? JSON.stringify(x) : String(x)}`).join(" ");
}

function Row({ e, open, flip }: { e: AuditEntry; open: boolean; flip: () => void }) {
  const t = useT();
  return (
    <>
      <tr>
        <td class="what cause"><span>{e.action}</span><small class={e.status >= 400 ? "bad" : "dim"}>{e.target} · {e.status}</small></td>
        <td class="name">{e.actor}<small>{e.via}</small></td>
        <td class="wide what"><code>{[said(e.asked), said(e.done)].filter(Boolean).join(" → ") || "–"}</code></td>
        <td class="wide what">{e.reason || "–"}</td>
        <td class="r"><Ago at={e.at} /></td>
        <td class="r"><button type="button" class="quiet small" aria-expanded={open} onClick={flip}>{t(open ? "close" : "show")}</button></td>
      </tr>
      {open && <tr><td colSpan={6}><Json value={{ asked: e.asked, done: e.done, reason: e.reason, status: e.status }} label={t("audit.asked")} /></td></tr>}
    </>
  );
}
