import { useState } from "react";
import { call } from "../api/client";
import { useResource } from "../api/resource";
import type { NewView, View, ViewList } from "../api/types";
import { useT } from "../i18n";
import { useMay } from "../roles";
import { go, href, usePlace } from "../router";
import { Dialog } from "../ui/bits";
import { complain, say } from "../ui/toast";

// Views are the saved ways to look at a list: one's own and the shared ones, kept on the server.
export function Views({ screen }: { screen: NewView["screen"] }) {
  const t = useT();
  const may = useMay();
  const { query } = usePlace();
  const q = new URLSearchParams(query);
  q.delete("after");
  q.delete("before");
  const here = q.toString();
  const r = useResource<ViewList>("/api/views", { screen });
  const [saving, setSaving] = useState(false);
  if (!r.data) return null; // this store keeps none
  const all = r.data.items;
  const now = all.find((v) => v.query === here);
  const show = (id: string) => {
    const v = all.find((o) => o.id === id);
    go(href([screen]) + (v?.query ? "?" + v.query : ""));
  };
  const drop = (v: View) => call("/api/views/" + encodeURIComponent(v.id), { method: "DELETE" }).then(() => { say(t("views.gone", { name: v.name })); r.reload(); }, complain);
  const options = (some: View[]) => some.map((v) => <option key={v.id} value={v.id}>{v.name}</option>);
  return (
    <div class="views">
      {all.length > 0 && (
        <select aria-label={t("views")} value={now?.id ?? ""} onChange={(e) => show(e.currentTarget.value)}>
          <option value="">{t("views")}</option>
          <optgroup label={t("views.own")}>{options(all.filter((v) => !v.shared))}</optgroup>
          <optgroup label={t("views.shared")}>{options(all.filter((v) => v.shared))}</optgroup>
        </select>
      )}
      {!now && here && <button type="button" class="quiet small" onClick={() => setSaving(true)}>{t("views.save")}</button>}
      {now && (!now.shared || may.operate) && <button type="button" class="quiet small" onClick={() => void drop(now)}>{t("views.delete")}</button>}
      {saving && <Save screen={screen} query={here} may={may.operate} close={() => setSaving(false)} done={r.reload} />}
    </div>
  );
}

function Save({ screen, query, may, close, done }: { screen: NewView["screen"]; query: string; may: boolean; close: () => void; done: () => void }) {
  const t = useT();
  const save = async (f: FormData) => {
    try {
      const v = await call<View>("/api/views", { body: { screen, query, name: f.get("name"), shared: f.get("shared") !== null } });
      say(t("views.saved", { name: v.name }));
      close();
      done();
    } catch (e) {
      complain(e);
    }
  };
  return (
    <Dialog title={t("views.save")} close={close}>
      <form class="form" onSubmit={(e) => { e.preventDefault(); void save(new FormData(e.currentTarget)); }}>
        <p><code>{decodeURIComponent(query.replaceAll("+", " "))}</code></p>
        <label>{t("views.name")}<input name="name" required maxLength={64} autoFocus autoComplete="off" /></label>
        {may && <label class="tick"><input type="checkbox" name="shared" /> {t("views.share")}</label>}
        <div class="acts"><button type="submit" class="main">{t("save")}</button></div>
      </form>
    </Dialog>
  );
}
