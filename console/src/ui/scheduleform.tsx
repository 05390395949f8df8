import { useEffect, useState } from "react";
import { call, Failed } from "../api/client";
import { print } from "../api/json";
import type { Schedule, TickList } from "../api/types";
import { useT } from "../i18n";
import { wrongJson } from "./addjob";
import { Dialog, Moment, Trouble } from "./bits";

// ScheduleForm adds a schedule or changes one, and shows its next ticks while it is
// written.
export function ScheduleForm({ of, close, done }: { of?: Schedule; close: () => void; done: (name: string) => void }) {
  const t = useT();
  const [kind, setKind] = useState(of?.every ? "every" : "cron");
  const [text, setText] = useState(of?.every ?? of?.cron ?? "0 8 * * 1-5");
  const [zone, setZone] = useState(of?.timezone ?? (of ? "" : Intl.DateTimeFormat().resolvedOptions().timeZone));
  const [data, setData] = useState(print(of?.job.data ?? {}));
  const [ticks, setTicks] = useState<string[]>();
  const [badTime, setBadTime] = useState<string>();
  const [error, setError] = useState<Failed>();
  const wrong = wrongJson(data);
  useEffect(() => {
    const timer = setTimeout(() => {
      call<TickList>("/api/schedules/preview", { body: { [kind]: text, ...(kind === "cron" && zone ? { timezone: zone } : {}), n: 3 } }).then(
        (l) => { setTicks(l.items); setBadTime(undefined); },
        (e: Failed) => { setTicks(undefined); setBadTime(e.message); },
      );
    }, 250);
    return () => clearTimeout(timer);
  }, [kind, text, zone]);
  return (
    <Dialog title={of ? of.name : t("schedules.add")} close={close}>
      <form
        class="form"
        onSubmit={async (e) => {
          e.preventDefault();
          const f = new FormData(e.currentTarget);
          const name = of?.name ?? String(f.get("name"));
          const { data: _, ...job } = of?.job ?? {};
          const def = {
            ...(of ? { start: of.start, end: of.end, limit: of.limit, jitter: of.jitter, missed: of.missed, rev: of.rev } : { rev: 0 }),
            [kind]: text, ...(kind === "cron" && zone ? { timezone: zone } : {}), overlap: f.get("overlap"),
          };
          const jobText = JSON.stringify({ ...job, queue: f.get("queue"), name: f.get("job") }).slice(0, -1) + `,"data":${data}}`;
          setError(undefined);
          try {
            await call("/api/schedules/" + encodeURIComponent(name), { method: "PUT", raw: JSON.stringify(def).slice(0, -1) + `,"job":${jobText}}` });
            close();
            done(name);
          } catch (err) {
            if (err instanceof Failed) setError(err);
          }
        }}
      >
        {!of && <label>{t("schedules.name")}<input name="name" required autoFocus autoComplete="off" placeholder="nightly" /></label>}
        <div class="pair">
          <label>{t("queue")}<input name="queue" required defaultValue={of?.job.queue} autoComplete="off" /></label>
          <label>{t("job.name")}<input name="job" required defaultValue={of?.job.name} autoComplete="off" /></label>
        </div>
        <div class="triple">
          <label>{t("schedules.kind")}
            <select value={kind} onChange={(e) => { setKind(e.currentTarget.value); setText(e.currentTarget.value === "cron" ? "0 8 * * 1-5" : "15m"); }}>
              <option value="cron">{t("schedules.cron")}</option>
              <option value="every">{t("schedules.every")}</option>
            </select>
          </label>
          <label>{kind === "cron" ? t("schedules.cron") : t("schedules.every")}<input class="code" value={text} aria-invalid={!!badTime} onInput={(e) => setText(e.currentTarget.value)} required /></label>
          {kind === "cron" ? <label>{t("schedules.zone")}<input value={zone} onInput={(e) => setZone(e.currentTarget.value)} placeholder="UTC" /></label> : <span />}
        </div>
        {badTime ? <p class="bad" role="status">{badTime}</p> : <p class="dim" role="status">{t("schedules.ticks")}: {ticks?.map((at, i) => <span key={at}>{i > 0 && ", "}<Moment at={at} /></span>)}</p>}
        <label>{t("schedules.overlap")}
          <select name="overlap" defaultValue={of?.overlap ?? "allow"}>
            {(["allow", "skip", "wait", "cancel"] as const).map((o) => <option key={o} value={o}>{t(`overlap.${o}`)}</option>)}
          </select>
        </label>
        <label>{t("job.data")}<textarea class="code" rows={5} spellcheck={false} value={data} aria-invalid={!!wrong} onInput={(e) => setData(e.currentTarget.value)} /></label>
        {wrong && <p class="bad" role="status">{wrong}</p>}
        <Trouble error={error} />
        <div class="acts"><button type="submit" class="main" disabled={!!wrong || !!badTime}>{t("save")}</button></div>
      </form>
    </Dialog>
  );
}
