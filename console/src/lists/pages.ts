import { useCallback, useMemo, useRef, useState } from "react";
import { call, Failed, numberOf, type Options } from "../api/client";
import { useResource } from "../api/resource";

// mostRows is how many rows a list holds; what lies beyond is another address.
export const mostRows = 10_000;
const first = 50;
const further = 200;

interface Page<T> {
  items: T[];
  next?: string | number;
}

interface Tail<T> {
  of?: Page<T>; // the first page that it belongs to
  items: T[];
  next?: string;
  over: boolean;
  loading: boolean;
  error?: Failed;
}

const cursorOf = (next?: string | number) => (next === undefined || next === "" || numberOf(next) === 0 ? undefined : String(next));

// usePages reads a list page after page, as far as somebody scrolls. cursor is how the API
// is asked for what comes after a page.
export function usePages<T>(path: string, query: NonNullable<Options["query"]>, cursor: "after" | "before") {
  const page = useResource<Page<T>>(path, { ...query, limit: first });
  const [kept, keep] = useState<Tail<T>>({ items: [], over: false, loading: false });
  const now = useRef(page.data);
  now.current = page.data;
  const tail = kept.of === page.data ? kept : { of: page.data, items: [], over: false, loading: false };
  const items = useMemo(() => [...(page.data?.items ?? []), ...tail.items], [page.data, tail.items.length]);
  const next = tail.items.length > 0 || tail.over ? tail.next : cursorOf(page.data?.next);
  const more = next !== undefined && !tail.over && items.length < mostRows;
  const load = useCallback(async () => {
    if (!more || tail.loading) return;
    const of = page.data;
    keep({ ...tail, of, next, loading: true, error: undefined });
    try {
      const p = await call<Page<T>>(path, { query: { ...query, [cursor]: next, limit: further } });
      if (now.current !== of) return; // the list is another one by now
      const on = cursorOf(p.next);
      // A filter may find nothing on a page, and something on the next one.
      keep({ of, items: [...tail.items, ...p.items], next: on, over: on === undefined || (cursor === "before" && p.items.length === 0), loading: false });
    } catch (e) {
      if (now.current === of) keep({ ...tail, of, next, loading: false, error: e instanceof Failed ? e : undefined });
    }
  }, [more, tail, page.data, path, next]);
  return { ...page, items, more, next: tail.over ? undefined : next, load, loadingMore: tail.loading, error: page.error ?? tail.error };
}
