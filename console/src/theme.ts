import { kept, Store } from "./store";

export type Theme = "auto" | "light" | "dark";

const chosen = kept.get("theme");
export const theme = new Store<Theme>(chosen === "light" || chosen === "dark" ? chosen : "auto");

const system = matchMedia("(prefers-color-scheme: dark)");
system.addEventListener("change", showTheme);

// showTheme tells the style which of its two sets of colours holds, always: it need not
// ask the system too.
export function showTheme() {
  const t = theme.get();
  document.documentElement.dataset.theme = t === "auto" ? (system.matches ? "dark" : "light") : t;
}

export function wear(t: Theme) {
  kept.set("theme", t);
  theme.set(t);
  showTheme();
}
