import type { Key } from "./i18n";

export interface Screen {
  path: string; // first part of the address
  name: Key;
  key: string; // after g
}

// The screens, as the navigation shows them.
export const groups: { name?: Key; screens: Screen[] }[] = [
  { screens: [{ path: "", name: "nav.overview", key: "o" }] },
  {
    name: "nav.work",
    screens: [
      { path: "jobs", name: "nav.jobs", key: "j" },
      { path: "queues", name: "nav.queues", key: "q" },
      { path: "dead", name: "nav.dead", key: "d" },
      { path: "alerts", name: "nav.alerts", key: "a" },
      { path: "flows", name: "nav.flows", key: "f" },
      { path: "schedules", name: "nav.schedules", key: "s" },
      { path: "workers", name: "nav.workers", key: "w" },
      { path: "history", name: "nav.history", key: "h" },
    ],
  },
  {
    name: "nav.events",
    screens: [
      { path: "events", name: "nav.find", key: "e" },
      { path: "bad", name: "nav.bad", key: "b" },
    ],
  },
  {
    name: "nav.access",
    screens: [
      { path: "keys", name: "nav.keys", key: "k" },
      { path: "audit", name: "nav.audit", key: "u" },
    ],
  },
];
