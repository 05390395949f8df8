import { useCallback, useMemo } from "react";
import { Store, useStore } from "./store";

// The address is the state: a screen shows what its address says, so that a link
// shows to others what one sees.

// base is what stands before all addresses, as a proxy may have put it there. The
// script lies in BASE/assets/HASH/; while developing, in BASE/src/.
export const base = new URL(import.meta.env.DEV ? "../" : "../../", import.meta.url).pathname;

export interface Place {
  path: string[];
  query: URLSearchParams;
}

function here(): Place {
  const rest = location.pathname.startsWith(base) ? location.pathname.slice(base.length) : location.pathname.slice(1);
  return { path: rest.split("/").filter(Boolean).map(decode), query: new URLSearchParams(location.search) };
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const place = new Store<Place>(here());
addEventListener("popstate", () => place.set(here()));

export function href(path: (string | number)[], query: Record<string, string | undefined> = {}): string {
  const q = new URLSearchParams();
  for (const [k, v] of Object.entries(query)) if (v) q.set(k, v);
  const text = q.toString();
  return base + path.map((p) => encodeURIComponent(p)).join("/") + (text ? "?" + text : "");
}

export function go(to: string, replace = false) {
  if (to === location.pathname + location.search) return;
  history[replace ? "replaceState" : "pushState"](null, "", to);
  place.set(here());
  if (!replace) scrollTo(0, 0);
}

export function usePlace(): Place {
  return useStore(place);
}

// useQuery is one part of the address as a state.
export function useQuery(key: string): [string, (v: string) => void] {
  const p = usePlace();
  const value = p.query.get(key) ?? "";
  const set = useCallback(
    (v: string) => {
      const q = new URLSearchParams(location.search);
      if (v) q.set(key, v);
      else q.delete(key);
      const text = q.toString();
      go(location.pathname + (text ? "?" + text : ""), true);
    },
    [key],
  );
  return useMemo(() => [value, set], [value, set]);
}

// follow lets links of the console be followed without loading the page anew.
export function follow(e: MouseEvent) {
  if (e.defaultPrevented || e.button !== 0 || e.metaKey || e.ctrlKey || e.shiftKey || e.altKey) return;
  const a = (e.target as Element | null)?.closest?.("a[href]") as HTMLAnchorElement | null;
  if (!a || a.target || a.origin !== location.origin || a.hasAttribute("download") || !a.pathname.startsWith(base)) return;
  if (a.pathname.startsWith(base + "api/") || a.pathname.startsWith(base + "openapi")) return;
  e.preventDefault();
  go(a.pathname + a.search);
}
