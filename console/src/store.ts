import { useEffect, useState } from "react";

// Store is one value that screens watch.
export class Store<T> {
  private watchers = new Set<(v: T) => void>();
  constructor(private value: T) {}
  get(): T {
    return this.value;
  }
  set(v: T) {
    if (Object.is(v, this.value)) return;
    this.value = v;
    for (const w of [...this.watchers]) w(v);
  }
  watch(w: (v: T) => void): () => void {
    this.watchers.add(w);
    return () => this.watchers.delete(w);
  }
}

export function useStore<T>(s: Store<T>): T {
  const [v, set] = useState(() => s.get());
  useEffect(() => {
    set(() => s.get());
    return s.watch((next) => set(() => next));
  }, [s]);
  return v;
}

// kept reads and writes what this browser remembers; one that refuses to remember
// anything is no reason to fail.
export const kept = {
  get(key: string): string | null {
    try {
      return localStorage.getItem("forebay." + key);
    } catch {
      return null;
    }
  },
  set(key: string, value: string | null) {
    try {
      if (value === null) localStorage.removeItem("forebay." + key);
      else localStorage.setItem("forebay." + key, value);
    } catch {
      // a private window
    }
  },
};
