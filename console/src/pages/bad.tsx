import { useEffect, useState } from "react";
import { call } from "../api/client";
import { useResource } from "../api/resource";
import type { BadRow, KeyList, Outcome } from "../api/types";
import { useT, type Key } from "../i18n";
import { bytes, count } from "../i18n/format";
import { Foot } from "../lists/foot";
import { usePages } from "../lists/pages";
import { Table, type At } from "../lists/table";
import { Views } from "../lists/views";
import { useMay } from "../roles";
import { go, href, useQuery } from "../router";
import { useStore } from "../store";
import { Ago, Empty, Head, Loading, Moment, Pairs, Trouble } from "../ui/bits";
import { Json } from "../ui/json";
import { now, refresh } from "../ui/live";
import { Discard, tell, usePick } from "../ui/pick";
import { complain } from "../ui/toast";

export default function Page({ rest }: { rest: string[] }) {
  return rest[0] ? <One key={rest[0]} seq={rest[0]} /> : <All />;
}

function All() {
  const t = useT();
  const may = useMay();
  const [code, setCode] = useQuery("code");
  const [key, setKey] = useQuery("key");
  const [before] = useQuery("before");
  const filter = { code: code || undefined, key: key || undefined };
  const page = usePages<BadRow>("/api/bad", { ...filter, before }, "before");
  const keys = useResource<KeyList>("/api/keys");
  const bad = useStore(now).overview?.bad;
  const pick = usePick();
  const [discarding, setDiscarding] = useState(false);
  useEffect(pick.clear, [code, key, before]);
  const rows = page.items;
  const body = pick.chosen.size > 0 ? { seqs: [...pick.chosen] } : { all: true, ...filter };
  const anew = () => { pick.clear(); page.reload(); refresh(); };
  const replay = async () => {
    try {
      tell(await call<Outcome>("/api/bad/replay", { body }), t);
      anew();
    } catch (e) {
      complain(e);
    }
  };
  const codes = Object.entries(bad?.byCode ?? {}).sort((a, b) => b[1] - a[1]);
  return (
    <>
      <Head title={t("nav.bad")} lead={t("bad.lead")} />
      <Views screen="bad" />
      {codes.length > 0 && (
        <div class="chips" role="group" aria-label={t("bad.code")}>
          <button type="button" class="chip" aria-pressed={!code} onClick={() => setCode("")}>{t("all")}</button>
          {codes.map(([c, n]) => <button key={c} type="button" class="chip" aria-pressed={code === c} onClick={() => setCode(c)}>{c} <b class="num">{count(t.lang, n)}</b></button>)}
        </div>
      )}
      {(keys.data?.items.length ?? 0) > 0 && (
        <div class="fields">
          <label>{t("bad.key")}
            <select value={key} onChange={(e) => setKey(e.currentTarget.value)}>
              <option value="">{t("all")}</option>
              {keys.data!.items.map((k) => <option key={k.id} value={k.id}>{k.name}</option>)}
            </select>
          </label>
        </div>
      )}
      {may.operate && rows.length > 0 && (
        <div class="bulk">
          <span class="num" role="status">{pick.chosen.size > 0 ? t("jobs.chosen", { n: pick.chosen.size }) : t("dead.matching")}</span>
          <button type="button" class="small" onClick={replay}>{t("bad.replay")}</button>
          <button type="button" class="small danger" onClick={() => setDiscarding(true)}>{t("discard")}…</button>
        </div>
      )}
      <Trouble error={page.error} />
      {page.loading && !page.data ? <Loading /> : rows.length > 0 ? (
        <Rows rows={rows} more={page.more} end={page.load} pick={may.operate ? pick : undefined} />
      ) : !page.error && (code || key ? <Empty title={t("bad.nomatch")}><a href={href(["bad"])}>{t("jobs.clear")}</a></Empty> : (
        <Empty title={t("bad.empty")} command={`curl -d '{"userId":"42"}' ${location.origin}/ingest/event`}>{t("bad.empty.lead")}</Empty>
      ))}
      <Foot list={page} begin={before && href(["bad"], { code, key })} on={href(["bad"], { code, key, before: page.next })} />
      {discarding && <Discard path="/api/bad/discard" body={body} n={pick.chosen.size || (bad?.rows ?? rows.length)} close={() => setDiscarding(false)} done={anew} />}
    </>
  );
}

function Rows({ rows, more, end, pick }: { rows: BadRow[]; more: boolean; end: () => void; pick?: ReturnType<typeof usePick> }) {
  const t = useT();
  const head = (
    <>
      {pick && <th class="check"><input type="checkbox" aria-label={t("jobs.choose.all")} checked={rows.every((r) => pick.chosen.has(r.seq))} onChange={() => pick.all(rows.map((r) => r.seq))} /></th>}
      <th>{t("bad.reason")}</th><th class="wide">{t("bad.pointer")}</th><th class="wide">{t("bad.dialect")}</th><th class="r wide">{t("size")}</th><th class="r">{t("time")}</th>
    </>
  );
  const row = (r: BadRow, { key, ...at }: At) => (
    <tr key={key} {...at} class={pick?.chosen.has(r.seq) ? "chosen" : ""}>
      {pick && <td class="check"><input type="checkbox" aria-label={t("jobs.choose", { id: String(r.seq) })} checked={pick.chosen.has(r.seq)} onChange={() => pick.flip(r.seq)} /></td>}
      <td class="what cause"><a href={href(["bad", r.seq])}>{r.reason}</a><small class="dim"><Why code={r.code} /></small></td>
      <td class="wide"><code>{r.pointer || "–"}</code></td>
      <td class="wide">{r.dialect}</td>
      <td class="r wide num">{bytes(t.lang, r.size)}</td>
      <td class="r"><Ago at={r.at} /></td>
    </tr>
  );
  return <Table items={rows} id={(r) => r.seq} head={head} row={row} more={more} end={end} />;
}

// Why says what a code means, beside the code that filters are made of.
function Why({ code }: { code: string }) {
  const t = useT();
  const key = `why.${code}` as Key;
  return <>{code}{t(key) !== key && " · " + t(key)}</>;
}

function One({ seq }: { seq: string }) {
  const t = useT();
  const may = useMay();
  const r = useResource<BadRow>("/api/bad/" + encodeURIComponent(seq));
  const [discarding, setDiscarding] = useState(false);
  const b = r.data;
  if (!b) return r.error ? (r.error.code === "not_found" ? <Empty title={t("bad.none")}><a href={href(["bad"])}>{t("nav.bad")}</a></Empty> : <Trouble error={r.error} />) : <Loading />;
  const away = () => { refresh(); go(href(["bad"]), true); };
  return (
    <>
      <Head title={<Why code={b.code} />} lead={<><a href={href(["bad"])}>{t("nav.bad")}</a> / <span class="num">{b.seq}</span></>}>
        {may.operate && (
          <>
            {!b.cut && <button type="button" class="main" onClick={() => void call<Outcome>("/api/bad/replay", { body: { seqs: [b.seq] } }).then((o) => { tell(o, t); if (o.done === 1) away(); }, complain)}>{t("bad.replay")}</button>}
            <button type="button" class="danger" onClick={() => setDiscarding(true)}>{t("discard")}…</button>
          </>
        )}
      </Head>
      <div class="note bad"><strong>{b.pointer}</strong> {b.reason}</div>
      <Pairs
        pairs={[
          { name: t("time"), value: <Moment at={b.at} /> },
          { name: t("bad.dialect"), value: b.dialect },
          { name: t("bad.index"), value: <span class="num">{b.index}</span> },
          b.eventId && { name: t("id"), value: <a class="id" href={href(["events"], { id: b.eventId })}>{b.eventId}</a> },
          b.keyId && { name: t("bad.key"), value: <code>{b.keyId}</code> },
          { name: t("size"), value: bytes(t.lang, b.size) + (b.cut ? " " + t("bad.cut") : "") },
        ]}
      />
      <section>
        <h2>{t("bad.content")}</h2>
        {b.content?.base64 ? <pre tabIndex={0}>{text(b.content.base64)}</pre> : <Json value={b.content?.json} label={t("bad.content")} />}
      </section>
      {discarding && <Discard path="/api/bad/discard" body={{ seqs: [b.seq] }} n={1} close={() => setDiscarding(false)} done={away} />}
    </>
  );
}

// text shows bytes that are no JSON as well as they can be shown.
function text(base64: string): string {
  return new TextDecoder().decode(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)));
}
