import { useResource } from "../api/resource";
import type { EventPlace } from "../api/types";
import { useT } from "../i18n";
import { href, useQuery } from "../router";
import { Empty, Head, Loading, Moment, Trouble } from "../ui/bits";
import { Json } from "../ui/json";
import { Ingest } from "./ingest";

export default function Page() {
  const t = useT();
  const [id, setId] = useQuery("id");
  const r = useResource<EventPlace>(id ? "/api/events/" + encodeURIComponent(id) : null, {}, 3000);
  return (
    <>
      <Head title={t("nav.find")} lead={t("events.lead")} />
      <form class="filter" role="search" onSubmit={(e) => { e.preventDefault(); setId(String(new FormData(e.currentTarget).get("id")).trim()); }}>
        <input name="id" data-search key={id} defaultValue={id} placeholder={t("events.id")} aria-label={t("events.id")} autoComplete="off" spellcheck={false} />
        <button type="submit" class="main">{t("events.find")}</button>
      </form>
      {!id && <Empty title={t("events.empty")} command={`curl -d '{"eventType":"signup","userId":"42","payload":{"plan":"free"}}' ${location.origin}/ingest/event`}>{t("events.empty.lead")}</Empty>}
      {!id && <Ingest />}
      <Trouble error={r.error} />
      {id && r.loading && !r.data && <Loading />}
      {id && r.data && <Where v={r.data} />}
    </>
  );
}

function Where({ v }: { v: EventPlace }) {
  const t = useT();
  const links: Record<string, (seq?: number) => string> = { "dead letters": (seq) => href(seq ? ["dead", seq] : ["dead"]), "bad rows": (seq) => href(seq ? ["bad", seq] : ["bad"]) };
  return (
    <>
      <p class="big">{t(`event.${v.state}`)}</p>
      <ol class="places">
        {v.places.map((p) => (
          <li key={p.name} class={p.failed ? "bad" : p.found ? "found" : "dim"}>
            <b>{p.found && links[p.name] ? <a href={links[p.name](p.seq)}>{t(`place.${p.name}`)}</a> : t(`place.${p.name}`)}</b>
            <span>{p.says}</span>
            {p.at && <Moment at={p.at} />}
            {p.name === "queue" && p.found && <a href={href(["history"], { of: "messages", job: v.id })}>{t("nav.history")}</a>}
          </li>
        ))}
      </ol>
      {v.event && <section><h2>{t("event")}</h2><Json value={v.event} label={t("event")} /></section>}
    </>
  );
}
