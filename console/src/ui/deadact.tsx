import { useEffect, useState } from "react";
import { call, Failed, numberOf } from "../api/client";
import type { DeadFilter, DeadWork } from "../api/types";
import { useT } from "../i18n";
import { count } from "../i18n/format";
import { go, href } from "../router";
import { Dialog, Loading, Trouble } from "./bits";

export type DeadVerb = "replay" | "discard";

// DeadDialog does something with all dead letters of a filter. First they are counted;
// then the server does it, as an action that can be watched, paused and cancelled.
export function DeadDialog({ verb, filter, close }: { verb: DeadVerb; filter: DeadFilter; close: () => void }) {
  const t = useT();
  const meant = Object.keys(filter).length > 0 ? filter : { all: true };
  const [dry, setDry] = useState<DeadWork>();
  const [error, setError] = useState<Failed>();
  const [busy, setBusy] = useState(false);
  const [typed, setTyped] = useState("");
  const [canary, setCanary] = useState(true);
  const [key] = useState(() => crypto.randomUUID?.() ?? String(Math.random()));
  const failed = (e: unknown) => { if (e instanceof Failed) setError(e); };
  useEffect(() => {
    call<DeadWork>("/api/dead/actions", { body: { action: verb, ...meant, dryRun: true, ...(verb === "discard" ? { reason: "dry run" } : {}) } }).then(setDry, failed);
  }, []);
  const n = numberOf(dry?.matched ?? 0);
  const start = async (f: FormData) => {
    setBusy(true);
    setError(undefined);
    const number = (name: string) => Number(f.get(name) || 0);
    const body: Record<string, unknown> = { action: verb, ...meant };
    if (verb === "discard") body.reason = String(f.get("reason"));
    if (number("rate") > 0) body.rate = number("rate");
    if (verb === "replay" && canary) body.canary = { count: number("count"), maxFailed: number("maxFailed"), timeout: String(f.get("timeout") || "10m") };
    try {
      const w = await call<DeadWork>("/api/dead/actions", { body, key });
      close();
      go(href(["dead", "actions", w.id]));
    } catch (e) {
      failed(e);
    }
    setBusy(false);
  };
  return (
    <Dialog title={t(verb === "replay" ? "dead.replay.all" : "dead.discard.all")} close={close}>
      {!dry && !error && <Loading />}
      {dry && (
        <form class="form" onSubmit={(e) => { e.preventDefault(); void start(new FormData(e.currentTarget)); }}>
          <p class="big num">{count(t.lang, n)}{dry.more && "+"} <small>{t("dead.meant")}</small></p>
          {dry.sample?.slice(0, 3).map((d) => <p key={d.seq} class="sample"><code>{d.seq}</code> <span>{d.message.kind}</span> <span class="dim">{d.cause.message}</span></p>)}
          {verb === "replay" && (
            <fieldset>
              <legend><label class="tick"><input type="checkbox" checked={canary} onChange={(e) => setCanary(e.currentTarget.checked)} /> {t("canary")}</label></legend>
              <p class="dim">{t("canary.lead")}</p>
              {canary && (
                <div class="triple">
                  <label>{t("canary.count")}<input name="count" type="number" min="1" max="1000" required defaultValue={Math.max(1, Math.min(10, n))} /></label>
                  <label>{t("canary.most")}<input name="maxFailed" type="number" min="0" defaultValue="0" /></label>
                  <label>{t("canary.timeout")}<input name="timeout" defaultValue="10m" pattern="[0-9.a-z]+" /></label>
                </div>
              )}
            </fieldset>
          )}
          <label>{t("dead.rate")}<input name="rate" type="number" min="0" max="100000" step="any" placeholder={t("limits.none")} /></label>
          {verb === "discard" && <label>{t("discard.reason")}<input name="reason" required maxLength={500} autoFocus autoComplete="off" /></label>}
          {verb === "discard" && n > 0 && <label>{t("type.confirm", { text: String(n) })}<input inputMode="numeric" value={typed} onInput={(e) => setTyped(e.currentTarget.value)} autoComplete="off" /></label>}
          <Trouble error={error} />
          <div class="acts"><button type="submit" class={verb === "discard" ? "danger" : "main"} disabled={busy || n === 0 || (verb === "discard" && typed !== String(n))}>{t(verb)}</button></div>
        </form>
      )}
      {!dry && <Trouble error={error} />}
    </Dialog>
  );
}
