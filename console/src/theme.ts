import { kept, Store } from "./store";

export type Theme = "auto" | "light" | "dark";

const chosen = kept.get("theme");
export const theme = new Store<Theme>(chosen === "light" || chosen === "dark" ? chosen : "auto");

export function showTheme() {
  const t = theme.get();
  if (t === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = t;
}

export function wear(t: Theme) {
  kept.set("theme", t);
  theme.set(t);
  showTheme();
}
