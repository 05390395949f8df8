import { useCallback, useEffect, useRef, useState } from "react";
import { call, Failed, reach, type Options } from "./client";

export interface Resource<T> {
  data?: T;
  error?: Failed;
  loading: boolean;
  reload: () => void;
}

// useResource asks for something, and again every so many ms while the page is seen. What
// was there stays while it is asked again, and after a failure.
export function useResource<T>(path: string | null, query: Options["query"] = {}, every = 0): Resource<T> {
  const [state, setState] = useState<{ data?: T; error?: Failed; loading: boolean; of?: string }>({ loading: true });
  const key = path === null ? null : JSON.stringify([path, query]);
  const [turn, setTurn] = useState(0);
  const latest = useRef(0);
  useEffect(() => {
    if (path === null || key === null) return;
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const ask = async () => {
      const mine = ++latest.current;
      try {
        const data = await call<T>(path, { query, signal: stop.signal });
        if (mine === latest.current && !stop.signal.aborted) setState({ data, loading: false, of: key });
      } catch (e) {
        if (stop.signal.aborted) return;
        const error = e instanceof Failed ? e : new Failed({ status: 0, code: "internal", detail: String(e) });
        if (mine === latest.current) setState((s) => ({ data: s.of === key ? s.data : undefined, error, loading: false, of: key }));
      }
      if (every > 0 && !stop.signal.aborted) timer = setTimeout(next, every);
    };
    const next = () => {
      timer = undefined;
      if (document.hidden) return; // begun anew when it is seen
      void ask();
    };
    const seen = () => {
      if (!document.hidden && timer === undefined && every > 0) void ask();
    };
    setState((s) => (s.of === key ? s : { data: undefined, loading: true, of: key }));
    void ask();
    document.addEventListener("visibilitychange", seen);
    // What failed while the server was away is asked again when it is back.
    const back = reach.watch((ok) => {
      if (ok && every === 0) void ask();
    });
    return () => {
      stop.abort();
      clearTimeout(timer);
      back();
      document.removeEventListener("visibilitychange", seen);
    };
  }, [key, every, turn]);
  const reload = useCallback(() => setTurn((n) => n + 1), []);
  return { data: state.of === key ? state.data : undefined, error: state.of === key ? state.error : undefined, loading: state.loading || state.of !== key, reload };
}
