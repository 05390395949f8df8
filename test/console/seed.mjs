// What the screens show in these tests.
import { eventually } from "./server.mjs";

export async function seed(s) {
  const jobs = [];
  for (let n = 1; n <= 14; n++) {
    jobs.push({ queue: "mail", name: "welcome", data: { to: `user${n}@example.com`, user: { id: 100 + n }, exact: 1 }, tags: ["signup"] });
  }
  for (let n = 1; n <= 6; n++) {
    jobs.push({ queue: "billing", name: "charge", data: { do: "refuse", why: `card of customer ${n} was declined`, customer: n }, tags: ["invoice"] });
  }
  for (let n = 1; n <= 5; n++) jobs.push({ queue: "exports", name: "export", data: { table: "orders", part: n }, priority: n });
  for (let n = 1; n <= 3; n++) jobs.push({ queue: "mail", name: "welcome", data: { to: `later${n}@example.com` }, delay: `${n}h` });
  jobs.push({ queue: "media", name: "resize", data: { do: "steps", n: 400, pause: 150 } });
  await s.post("/api/jobs/bulk", { items: jobs });
  for (let n = 1; n <= 8; n++) await s.post("/ingest/event", { eventType: "signup", userId: String(n), payload: { plan: n % 2 ? "free" : "pro" } });
  for (const bad of ['{"userId":"42"}', '{"eventType":"signup","payload":"none"}', '{"eventType":7}']) await s.post("/ingest/event", bad).catch(() => {});
  await s.call("PUT", "/api/schedules/nightly", { cron: "30 2 * * *", timezone: "Europe/Berlin", job: { queue: "exports", name: "export", data: { table: "orders" } } });
  await s.call("PUT", "/api/schedules/heartbeat", { every: "15m", overlap: "skip", job: { queue: "mail", name: "welcome", data: { to: "ops@example.com" } } });
  await eventually("the jobs are worked", async () => {
    const q = Object.fromEntries((await s.get("/api/queues")).items.map((q) => [q.name, q]));
    return q.mail?.waiting === 0 && q.mail.active === 0 && q.billing?.dead === 6 && q.media?.active === 1;
  }, 40);
}

// A flow with one of each that the drawing shows, and a run that stops at a dead letter.
export const checkout = `flow: checkout
description: From the basket to the parcel

# Whoever buys for much is looked at first.
steps:
  check: {use: welcome, queue: mail, with: {to: "basket"}}
  size:
    needs: check
    branch:
      - {when: input.total > 1000, to: review}
      - {to: pay}
  review: {wait: {approval: {role: ops}, timeout: 1d}, on_timeout: fail}
  pay: {use: charge, queue: billing, needs: review, with: {do: refuse, why: the card was declined}, on_failure: dead_letter}
  thumbnails: {use: resize, queue: media, needs: check, for_each: {in: input.images, max_in_flight: 2}, with: {do: steps, n: 2, pause: 20}, on_failure: skip}
  parcel: {use: welcome, queue: mail, needs: [pay, thumbnails], with: {to: parcel}}
`;

export async function seedFlows(s) {
  const r = await fetch(s.url + "/api/flows/checkout", { method: "PUT", headers: { Authorization: "Bearer " + s.token, "Content-Type": "application/yaml" }, body: checkout });
  if (!r.ok) throw new Error(await r.text());
  const { runId } = await s.post("/api/flows/checkout/runs", { input: { total: 5, images: ["a", "b", "c"] } });
  await eventually("the run waits for its dead letter", async () => (await s.get("/api/runs/" + runId)).steps.find((step) => step.id === "pay").job?.state === "dead", 30);
  return runId;
}
