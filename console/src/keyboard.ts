import { groups } from "./screens";
import { go, href } from "./router";

// Keys that hold on every screen; lists have their own.
export function keyboard(help: () => void): () => void {
  let afterG = 0;
  const listen = (e: KeyboardEvent) => {
    if (e.ctrlKey || e.metaKey || e.altKey || e.defaultPrevented) return;
    const at = e.target as HTMLElement;
    if (/^(INPUT|TEXTAREA|SELECT)$/.test(at.tagName) || at.isContentEditable || document.querySelector("dialog[open]")) return;
    if (Date.now() - afterG < 1500) {
      afterG = 0;
      const s = groups.flatMap((g) => g.screens).find((s) => s.key === e.key);
      if (s) {
        e.preventDefault();
        go(href(s.path ? [s.path] : []));
      }
      return;
    }
    if (e.key === "g") afterG = Date.now();
    else if (e.key === "?") help();
    else if (e.key === "/") {
      const search = document.querySelector<HTMLInputElement>("[data-search]");
      if (!search) return;
      e.preventDefault();
      search.focus();
      search.select();
    } else list(e);
  };
  addEventListener("keydown", listen);
  return () => removeEventListener("keydown", listen);
}

// list moves in a list of rows: j and k move, x selects, Enter opens.
function list(e: KeyboardEvent) {
  const rows = [...document.querySelectorAll<HTMLElement>("[data-rows] tbody tr:not([aria-hidden])")];
  if (rows.length === 0) return;
  const at = rows.findIndex((r) => r.contains(document.activeElement));
  const to = (i: number) => {
    const row = rows[Math.max(0, Math.min(rows.length - 1, i))];
    (row.querySelector<HTMLElement>("a") ?? row).focus();
    row.scrollIntoView({ block: "nearest" });
  };
  if (e.key === "j") to(at + 1);
  else if (e.key === "k") to(at < 0 ? 0 : at - 1);
  else if (e.key === "x" && at >= 0) rows[at].querySelector<HTMLInputElement>("input[type=checkbox]")?.click();
  else return;
  e.preventDefault();
}
