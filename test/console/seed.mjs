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
