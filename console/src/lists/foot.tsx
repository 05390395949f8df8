import { useT } from "../i18n";
import type { usePages } from "./pages";

// Foot ends a list: how much of it is shown, and what leads on.
export function Foot({ list, begin, on }: { list: ReturnType<typeof usePages>; begin: string; on: string }) {
  const t = useT();
  const n = list.items.length;
  return (
    <div class="pager">
      {begin && <a class="button" href={begin}>{t("page.first")}</a>}
      {n > 0 && <span class="dim num" role="status">{t("list.shown", { n })} {list.next !== undefined && t("list.more")}</span>}
      {list.more && <button type="button" disabled={list.loadingMore} onClick={() => void list.load()}>{t("more")}</button>}
      {!list.more && list.next !== undefined && <a class="button" href={on} rel="next">{t("page.next")}</a>}
    </div>
  );
}
