import { useEffect, useState } from "react";
import { call, held, session, whoAmI } from "../api/client";
import { useResource } from "../api/resource";
import type { AddedKey, Key, KeyList } from "../api/types";
import { useT } from "../i18n";
import { count } from "../i18n/format";
import { useMay } from "../roles";
import { useStore } from "../store";
import { Ago, Command, Dialog, Empty, Head, Loading, Moment, Trouble } from "../ui/bits";
import { complain, say } from "../ui/toast";

export default function Page() {
  const t = useT();
  const may = useMay();
  const who = useStore(session);
  const r = useResource<KeyList>("/api/keys");
  const [adding, setAdding] = useState(false);
  const [rotating, setRotating] = useState<Key>();
  const [revoking, setRevoking] = useState<Key>();
  return (
    <>
      <Head title={t("nav.keys")} lead={t("keys.lead")}>
        {may.admin && <button type="button" class="main" onClick={() => setAdding(true)}>{t("keys.add")}</button>}
      </Head>
      {who?.open && <div class="note">{t("keys.open")}</div>}
      <Trouble error={r.error} />
      {!r.data ? !r.error && <Loading /> : r.data.items.length === 0 ? <Empty title={t("keys.empty")} command="forebay keys add ops --scope admin">{t("keys.empty.lead")}</Empty> : (
        <div class="scroll">
          <table>
            <thead><tr><th>{t("keys.name")}</th><th>{t("keys.scopes")}</th><th class="wide">{t("keys.queues")}</th><th class="wide">{t("keys.begins")}</th><th class="r wide">{t("keys.rate")}</th><th class="r wide">{t("keys.today")}</th><th class="r">{t("keys.since")}</th>{may.admin && <th />}</tr></thead>
            <tbody>{r.data.items.map((k) => <Row key={k.id} k={k} admin={may.admin} rotate={() => setRotating(k)} revoke={() => setRevoking(k)} />)}</tbody>
          </table>
        </div>
      )}
      {adding && <Add close={() => setAdding(false)} done={r.reload} />}
      {rotating && <Rotate k={rotating} close={() => setRotating(undefined)} done={r.reload} />}
      {revoking && <Revoke k={revoking} close={() => setRevoking(undefined)} done={r.reload} />}
    </>
  );
}

function Row({ k, admin, rotate, revoke }: { k: Key; admin: boolean; rotate: () => void; revoke: () => void }) {
  const t = useT();
  const both = !k.revokedAt && k.oldUntil && Date.parse(k.oldUntil) > Date.now();
  return (
    <tr class={k.revokedAt ? "dim" : ""}>
      <td class="name">{k.name}<small class="id">{k.id}</small>{both && <small>{t("keys.both")} <Moment at={k.oldUntil} /></small>}</td>
      <td>{k.scopes?.map((s) => <span key={s} class="tag">{s}</span>)}</td>
      <td class="wide">{k.queues?.length ? k.queues.map((q) => <span key={q} class="tag">{q}</span>) : <span class="dim">{t("all")}</span>}</td>
      <td class="wide"><code>{k.prefix}…</code></td>
      <td class="r wide num">{k.rate ? t("keys.pers", { n: k.rate }) : "–"}</td>
      <td class="r wide num">{count(t.lang, k.usedToday)}{k.dailyQuota ? " / " + count(t.lang, k.dailyQuota) : ""}</td>
      <td class="r"><Ago at={k.rotatedAt ?? k.createdAt} /></td>
      {admin && (
        <td class="r">
          {k.revokedAt ? <span>{t("keys.revoked")}</span> : (
            <>
              <button type="button" class="small" onClick={rotate}>{t("keys.rotate")}</button>{" "}
              <button type="button" class="small danger" onClick={revoke}>{t("keys.revoke")}</button>
            </>
          )}
        </td>
      )}
    </tr>
  );
}

// Once shows a secret, which nobody can show again.
function Once({ added, close }: { added: AddedKey; close: () => void }) {
  const t = useT();
  useEffect(() => {
    held.set(true);
    return () => held.set(false);
  }, []);
  return (
    <Dialog title={t("keys.added", { name: added.key.name })} close={close}>
      <p>{t("keys.once")}</p>
      <Command text={added.secret} />
      <div class="acts"><button type="button" class="main" onClick={close}>{t("close")}</button></div>
    </Dialog>
  );
}

const graces = ["0s", "1h", "24h", "7d", "30d"] as const;

// Rotate gives a key another secret; whoever shows the one before has a while to change.
function Rotate({ k, close, done }: { k: Key; close: () => void; done: () => void }) {
  const t = useT();
  const [added, setAdded] = useState<AddedKey>();
  const [keep, setKeep] = useState<string>("24h");
  if (added) return <Once added={added} close={close} />;
  const rotate = async () => {
    try {
      setAdded(await call<AddedKey>(`/api/keys/${encodeURIComponent(k.id)}/rotate`, { body: keep === "0s" ? {} : { keep } }));
      done();
    } catch (e) {
      complain(e);
    }
  };
  return (
    <Dialog title={t("keys.rotate")} close={close}>
      <p>{t("keys.rotate.lead", { name: k.name })}</p>
      <form class="form" onSubmit={(e) => { e.preventDefault(); void rotate(); }}>
        <label>{t("keys.keep")}
          <select value={keep} onChange={(e) => setKeep(e.currentTarget.value)}>
            {graces.map((g) => <option key={g} value={g}>{g === "0s" ? t("keys.keep.none") : g}</option>)}
          </select>
        </label>
        <div class="acts"><button type="submit" class={keep === "0s" ? "danger" : "main"}>{t("keys.rotate")}</button></div>
      </form>
    </Dialog>
  );
}

function Revoke({ k, close, done }: { k: Key; close: () => void; done: () => void }) {
  const t = useT();
  const revoke = () => call("/api/keys/" + encodeURIComponent(k.id), { method: "DELETE" }).then(() => { say(t("keys.revoked")); close(); done(); }, complain);
  return (
    <Dialog title={t("keys.revoke")} close={close}>
      <p>{t("keys.revoke.lead", { name: k.name })}</p>
      <div class="acts"><button type="button" class="danger" onClick={() => void revoke()}>{t("keys.revoke")}</button></div>
    </Dialog>
  );
}

function Add({ close, done }: { close: () => void; done: () => void }) {
  const t = useT();
  const [added, setAdded] = useState<AddedKey>();
  const [scope, setScope] = useState("ingest");
  if (added) return <Once added={added} close={close} />;
  const some = scope === "view" || scope === "operate"; // such keys may hold for some queues only
  return (
    <Dialog title={t("keys.add")} close={close}>
      <form
        class="form"
        onSubmit={async (e) => {
          e.preventDefault();
          const f = new FormData(e.currentTarget);
          const body: Record<string, unknown> = { name: f.get("name"), scopes: [scope, ...(f.get("payload") ? ["payload"] : [])] };
          for (const k of ["rate", "dailyQuota"]) if (f.get(k)) body[k] = Number(f.get(k));
          const queues = String(f.get("queues") ?? "").split(/[\s,]+/).filter(Boolean);
          if (queues.length > 0) body.queues = queues;
          try {
            const made = await call<AddedKey>("/api/keys", { body });
            setAdded(made);
            // The first key closes the server also for whoever made it, unless they sign in with it.
            if (session.get()?.open && scope !== "ingest") await call("/api/session", { body: { key: made.secret } }).then(whoAmI, complain);
            done();
          } catch (err) {
            complain(err);
          }
        }}
      >
        <label>{t("keys.name")}<input name="name" required maxLength={64} autoFocus autoComplete="off" placeholder="ios" /></label>
        <label>{t("keys.scope")}
          <select name="scope" value={scope} onChange={(e) => setScope(e.currentTarget.value)}>
            <option value="ingest">{t("scope.ingest")}</option>
            <option value="view">{t("scope.view")}</option>
            <option value="operate">{t("scope.operate")}</option>
            <option value="admin">{t("scope.admin")}</option>
          </select>
        </label>
        {some && <label>{t("keys.queues")}<input name="queues" autoComplete="off" spellcheck={false} placeholder="mail, img-*" /><small class="dim">{t("keys.queues.lead")}</small></label>}
        {scope !== "ingest" && <label class="tick"><input type="checkbox" name="payload" /> {t("scope.payload")}</label>}
        {scope === "ingest" && (
          <div class="pair">
            <label>{t("keys.rate")}<input name="rate" type="number" min="0" step="any" placeholder={t("limits.none")} /></label>
            <label>{t("keys.quota")}<input name="dailyQuota" type="number" min="0" placeholder={t("limits.none")} /></label>
          </div>
        )}
        <div class="acts"><button type="submit" class="main">{t("keys.add")}</button></div>
      </form>
    </Dialog>
  );
}
