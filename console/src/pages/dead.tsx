import { useEffect, useState } from "react";
import { call } from "../api/client";
import { useResource } from "../api/resource";
import type { DeadFilter, DeadGroup, DeadGroupList, DeadLetter, Outcome } from "../api/types";
import { useT } from "../i18n";
import { Foot } from "../lists/foot";
import { usePages } from "../lists/pages";
import { Table, type At } from "../lists/table";
import { Views } from "../lists/views";
import { useMay } from "../roles";
import { href, usePlace, useQuery } from "../router";
import { useStore } from "../store";
import { Ago, Empty, Head, Loading, Trouble } from "../ui/bits";
import { DeadDialog, type DeadVerb } from "../ui/deadact";
import { useDraft } from "../ui/draft";
import { now, refresh } from "../ui/live";
import { Discard, tell, usePick } from "../ui/pick";
import { complain } from "../ui/toast";
import { Action, Actions } from "./deadactions";
import { Groups, NoneDead } from "./deadgroups";
import { One } from "./deadletter";

export default function Page({ rest }: { rest: string[] }) {
  if (rest[0] === "actions" && rest[1]) return <Action key={rest[1]} id={rest[1]} />;
  return rest[0] ? <One key={rest[0]} seq={rest[0]} /> : <All />;
}

function All() {
  const t = useT();
  const { query } = usePlace();
  const tab = query.get("tab") ?? "";
  const [queue, setQueue] = useQuery("queue");
  const [code, setCode] = useQuery("code");
  const overview = useStore(now).overview;
  const tabs = { "": t("dead.groups"), all: t("dead.letters"), actions: t("dead.actions") };
  return (
    <>
      <Head title={t("nav.dead")} lead={t("dead.lead")} />
      <nav class="tabs" aria-label={t("nav.dead")}>
        {Object.entries(tabs).map(([k, label]) => <a key={k} href={href(["dead"], { tab: k, queue, code })} aria-current={tab === k ? "page" : undefined}>{label}</a>)}
      </nav>
      {tab !== "actions" && <Views screen="dead" />}
      {tab !== "actions" && (
        <div class="fields">
          <label>{t("queue")}
            <select value={queue} onChange={(e) => setQueue(e.currentTarget.value)}>
              <option value="">{t("all")}</option>
              {[...new Set([...(overview?.queues.map((q) => q.name) ?? []), ...(queue ? [queue] : [])])].map((q) => <option key={q} value={q}>{q}</option>)}
            </select>
          </label>
          <Code code={code} set={setCode} />
        </div>
      )}
      {tab === "actions" ? <Actions /> : tab === "all" ? <Letters queue={queue} code={code} setCode={setCode} /> : <Groups queue={queue} code={code} />}
    </>
  );
}

function Code({ code, set }: { code: string; set: (c: string) => void }) {
  const t = useT();
  const { field, enter } = useDraft(code, (text) => { set(text.trim()); return Promise.resolve(true); });
  return <label>{t("dead.code")}<input data-search placeholder={t("all")} {...field} onKeyDown={enter} /></label>;
}

// Letters are dead letters one by one: all, those of a cause, or what else is filtered.
function Letters({ queue, code, setCode }: { queue: string; code: string; setCode: (c: string) => void }) {
  const t = useT();
  const may = useMay();
  const { query } = usePlace();
  const group = query.get("group") ?? "";
  const before = query.get("before") ?? "";
  const filter: DeadFilter = { ...(queue ? { queue } : {}), ...(code ? { code } : {}), ...(group ? { group } : {}) };
  const page = usePages<DeadLetter>("/api/dead", { ...filter, before }, "before");
  const pick = usePick();
  const [discarding, setDiscarding] = useState(false);
  const [acting, setActing] = useState<DeadVerb>();
  useEffect(pick.clear, [queue, code, group, before]);
  const rows = page.items;
  const anew = () => { pick.clear(); page.reload(); refresh(); };
  const chosen = { seqs: [...pick.chosen] };
  const replay = async () => {
    try {
      tell(await call<Outcome>("/api/dead/replay", { body: chosen }), t);
      anew();
    } catch (e) {
      complain(e);
    }
  };
  const some = pick.chosen.size > 0;
  const at = { tab: "all", queue, code, group };
  return (
    <>
      {group && <Cause group={group} />}
      {may.operate && rows.length > 0 && (
        <div class="bulk">
          <span class="num" role="status">{some ? t("jobs.chosen", { n: pick.chosen.size }) : t("dead.matching")}</span>
          <button type="button" class="small" onClick={() => (some ? void replay() : setActing("replay"))}>{t("replay")}{!some && "…"}</button>
          <button type="button" class="small danger" onClick={() => (some ? setDiscarding(true) : setActing("discard"))}>{t("discard")}…</button>
        </div>
      )}
      <Trouble error={page.error} />
      {page.loading && !page.data ? <Loading /> : rows.length > 0 ? <Rows rows={rows} more={page.more} end={page.load} pick={may.operate ? pick : undefined} code={setCode} /> : !page.error && (
        queue || code || group ? <Empty title={t("dead.nomatch")}><a href={href(["dead"], { tab: "all" })}>{t("jobs.clear")}</a></Empty> : <NoneDead />
      )}
      <Foot list={page} begin={before && href(["dead"], at)} on={href(["dead"], { ...at, before: page.next })} />
      {discarding && <Discard path="/api/dead/discard" body={chosen} n={pick.chosen.size} close={() => setDiscarding(false)} done={anew} />}
      {acting && <DeadDialog verb={acting} filter={filter} close={() => setActing(undefined)} />}
    </>
  );
}

// Cause heads the letters of one cause.
function Cause({ group }: { group: string }) {
  const t = useT();
  const g: DeadGroup | undefined = useResource<DeadGroupList>("/api/dead/groups", { group, limit: 1 }).data?.items[0];
  return (
    <div class="note bad">
      {g ? <><strong>{g.code}</strong> {g.text} <span class="dim">{g.kind} · {g.queue} · {t("dead.count", { n: g.count })}</span></> : <code>{group}</code>}{" "}
      <a href={href(["dead"])}>{t("dead.groups")}</a>
    </div>
  );
}

function Rows({ rows, more, end, pick, code }: { rows: DeadLetter[]; more: boolean; end: () => void; pick?: ReturnType<typeof usePick>; code: (c: string) => void }) {
  const t = useT();
  const head = (
    <>
      {pick && <th class="check"><input type="checkbox" aria-label={t("jobs.choose.all")} checked={rows.every((r) => pick.chosen.has(r.seq))} onChange={() => pick.all(rows.map((r) => r.seq))} /></th>}
      <th>{t("dead.cause")}</th>
      <th>{t("job.name")}</th>
      <th class="wide">{t("queue")}</th>
      <th class="r wide">{t("job.attempts")}</th>
      <th class="r wide">{t("dead.replays")}</th>
      <th class="r">{t("dead.died")}</th>
    </>
  );
  const row = (d: DeadLetter, { key, ...at }: At) => (
    <tr key={key} {...at} class={pick?.chosen.has(d.seq) ? "chosen" : ""}>
      {pick && <td class="check"><input type="checkbox" aria-label={t("jobs.choose", { id: d.message.id })} checked={pick.chosen.has(d.seq)} onChange={() => pick.flip(d.seq)} /></td>}
      <td class="what cause"><a href={href(["dead", d.seq])}>{d.cause.message || d.cause.code}</a><small><button type="button" class="quiet small" onClick={() => code(d.cause.code)}>{d.cause.code}</button></small></td>
      <td class="name">{d.message.kind || "–"}<small class="id">{d.message.id}</small></td>
      <td class="wide">{d.message.queue}</td>
      <td class="r wide num">{d.attempts}</td>
      <td class="r wide num">{d.replays || "–"}</td>
      <td class="r"><Ago at={d.diedAt} /></td>
    </tr>
  );
  return <Table items={rows} id={(d) => d.seq} head={head} row={row} more={more} end={end} />;
}
