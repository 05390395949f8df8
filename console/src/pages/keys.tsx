import { useState } from "react";
import { call, session } from "../api/client";
import { useResource } from "../api/resource";
import type { AddedKey, Key, KeyList } from "../api/types";
import { useT } from "../i18n";
import { count } from "../i18n/format";
import { useMay } from "../roles";
import { useStore } from "../store";
import { Ago, Command, Dialog, Empty, Head, Loading, Trouble } from "../ui/bits";
import { complain, say } from "../ui/toast";

export default function Page() {
  const t = useT();
  const may = useMay();
  const who = useStore(session);
  const r = useResource<KeyList>("/api/keys");
  const [adding, setAdding] = useState(false);
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
            <thead><tr><th>{t("keys.name")}</th><th>{t("keys.scopes")}</th><th class="wide">{t("keys.begins")}</th><th class="r wide">{t("keys.rate")}</th><th class="r wide">{t("keys.today")}</th><th class="r">{t("keys.since")}</th>{may.admin && <th />}</tr></thead>
            <tbody>
              {r.data.items.map((k) => (
                <tr key={k.id} class={k.revokedAt ? "dim" : ""}>
                  <td class="name">{k.name}<small class="id">{k.id}</small></td>
                  <td>{k.scopes?.map((s) => <span key={s} class="tag">{s}</span>)}</td>
                  <td class="wide"><code>{k.prefix}…</code></td>
                  <td class="r wide num">{k.rate ? t("keys.pers", { n: k.rate }) : "–"}</td>
                  <td class="r wide num">{count(t.lang, k.usedToday)}{k.dailyQuota ? " / " + count(t.lang, k.dailyQuota) : ""}</td>
                  <td class="r"><Ago at={k.createdAt} /></td>
                  {may.admin && <td class="r">{k.revokedAt ? <span>{t("keys.revoked")}</span> : <button type="button" class="small danger" onClick={() => setRevoking(k)}>{t("keys.revoke")}</button>}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {adding && <Add close={() => setAdding(false)} done={r.reload} />}
      {revoking && (
        <Dialog title={t("keys.revoke")} close={() => setRevoking(undefined)}>
          <p>{t("keys.revoke.lead", { name: revoking.name })}</p>
          <div class="acts">
            <button
              type="button" class="danger"
              onClick={() => void call("/api/keys/" + encodeURIComponent(revoking.id), { method: "DELETE" }).then(() => { say(t("keys.revoked")); setRevoking(undefined); r.reload(); }, complain)}
            >
              {t("keys.revoke")}
            </button>
          </div>
        </Dialog>
      )}
    </>
  );
}

function Add({ close, done }: { close: () => void; done: () => void }) {
  const t = useT();
  const [added, setAdded] = useState<AddedKey>();
  if (added) {
    return (
      <Dialog title={t("keys.added", { name: added.key.name })} close={close}>
        <p>{t("keys.once")}</p>
        <Command text={added.secret} />
        <div class="acts"><button type="button" class="main" onClick={close}>{t("close")}</button></div>
      </Dialog>
    );
  }
  return (
    <Dialog title={t("keys.add")} close={close}>
      <form
        class="form"
        onSubmit={async (e) => {
          e.preventDefault();
          const f = new FormData(e.currentTarget);
          const body: Record<string, unknown> = { name: f.get("name"), scopes: [f.get("scope"), ...(f.get("payload") ? ["payload"] : [])] };
          for (const k of ["rate", "dailyQuota"]) if (f.get(k)) body[k] = Number(f.get(k));
          try {
            setAdded(await call<AddedKey>("/api/keys", { body }));
            done();
          } catch (err) {
            complain(err);
          }
        }}
      >
        <label>{t("keys.name")}<input name="name" required maxLength={64} autoFocus autoComplete="off" placeholder="ios" /></label>
        <label>{t("keys.scope")}
          <select name="scope">
            <option value="ingest">{t("scope.ingest")}</option>
            <option value="view">{t("scope.view")}</option>
            <option value="operate">{t("scope.operate")}</option>
            <option value="admin">{t("scope.admin")}</option>
          </select>
        </label>
        <label class="tick"><input type="checkbox" name="payload" /> {t("scope.payload")}</label>
        <div class="pair">
          <label>{t("keys.rate")}<input name="rate" type="number" min="0" step="any" placeholder={t("limits.none")} /></label>
          <label>{t("keys.quota")}<input name="dailyQuota" type="number" min="0" placeholder={t("limits.none")} /></label>
        </div>
        <div class="acts"><button type="submit" class="main">{t("keys.add")}</button></div>
      </form>
    </Dialog>
  );
}
