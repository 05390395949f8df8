// Flows in the console: built by mouse and by keyboard, published, run and watched.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { faults, looks } from "./look.mjs";
import { seedFlows } from "./seed.mjs";
import { browser, eventually, open, Server } from "./server.mjs";

let server, chrome, stopped;

before(async () => {
  [server, chrome] = await Promise.all([Server.start(), browser()]);
  stopped = await seedFlows(server);
});
after(async () => {
  await chrome?.close();
  await server?.stop();
});

test("flows, a flow, its designer and a run are drawn in each look: no error, nothing serious of axe", async () => {
  for (const [look, options] of Object.entries(looks)) {
    const page = await open(chrome, options);
    for (const [where, drawn] of [["/flows", 0], ["/flows/checkout", 6], ["/flows/checkout/edit", 6], ["/runs/" + stopped, 6]]) {
      await page.goto(server.url + where);
      await page.locator("main h1").first().waitFor();
      if (drawn) await eventually(`${where} is drawn, ${look}`, async () => (await page.locator(".react-flow__node").count()) === drawn);
      const [wide, there] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
      assert.ok(wide <= there, `${where} is ${wide} px wide on ${there}`);
      assert.deepEqual(await faults(page), [], where);
      assert.deepEqual(page.wrong, [], where);
    }
    await page.context().close();
  }
});

// publishAndWatch ends what both ways of building begin.
async function publishAndWatch(page, name, press) {
  await press(page.getByRole("button", { name: "Publish" }));
  await page.waitForURL("**/flows/" + name);
  const flow = await server.get("/api/flows/" + name);
  assert.deepEqual(flow.steps.map((s) => [s.id, s.needs ?? []]), [["welcome", []], ["resize", ["welcome"]]]);
  await press(page.getByRole("button", { name: "Run", exact: true }));
  await press(page.getByRole("dialog").getByRole("button", { name: "Run", exact: true }));
  await page.waitForURL("**/runs/*");
  await page.locator("h1 .state.completed").waitFor(); // told by the stream: the page is not loaded anew
  assert.equal(await page.locator(".react-flow__node .state.completed").count(), 2);
  assert.equal((await server.get("/api/runs/" + page.url().split("/").pop())).state, "completed");
  assert.deepEqual(page.wrong, []);
}

test("a flow is built by mouse, undone and done again, published, run and watched", async () => {
  const page = await open(chrome);
  await page.goto(server.url + "/flows");
  await page.getByRole("button", { name: "New flow" }).click();
  await page.getByLabel("Name").fill("mouse");
  await page.getByRole("button", { name: "Draw it" }).click();
  await page.getByRole("button", { name: "welcome" }).dragTo(page.locator(".empty.graph"));
  await page.locator('.react-flow__node[data-id="welcome"]').waitFor();
  await page.getByRole("button", { name: "resize" }).dragTo(page.locator('.react-flow__node[data-id="welcome"]'));
  await page.locator('.react-flow__node[data-id="resize"]').waitFor();
  await page.getByRole("button", { name: "Undo" }).click();
  await page.locator('.react-flow__node[data-id="resize"]').waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Redo" }).click();
  await page.locator('.react-flow__node[data-id="resize"]').waitFor();
  await publishAndWatch(page, "mouse", (b) => b.click());
  await page.context().close();
});

test("a flow is built by keyboard alone, published, run and watched", async () => {
  const page = await open(chrome);
  const press = async (b) => {
    await eventually("it can be pressed", () => b.isEnabled());
    await b.press("Enter");
  };
  await page.goto(server.url + "/flows/keys/edit");
  await press(page.getByRole("button", { name: "welcome" }));
  await page.locator('.react-flow__node[data-id="welcome"]').waitFor();
  await page.getByText("Click to add after welcome.").waitFor();
  await press(page.getByRole("button", { name: "resize" }).first());
  await page.locator('.react-flow__node[data-id="resize"]').waitFor();
  await page.getByRole("checkbox", { name: "welcome" }).and(page.locator(":checked")).waitFor();
  await publishAndWatch(page, "keys", press);
  await page.context().close();
});

test("forms make a branch, a wait and a join; a dry run takes the way that its input says", async () => {
  const page = await open(chrome);
  const box = (name) => page.locator(".inspector").getByLabel(name, { exact: true });
  const node = (id) => page.locator(`.react-flow__node[data-id="${id}"]`);
  const leave = (field, text) => field.fill(text).then(() => field.press("Tab"));
  await page.goto(server.url + "/flows/forms/edit");
  await page.getByRole("button", { name: "welcome" }).click();
  await node("welcome").waitFor();
  await page.getByRole("button", { name: "Branch" }).click();
  await node("branch").waitFor();
  await leave(box("Case 1: when"), "input.total > 100");
  await page.getByRole("button", { name: "Wait for an approval" }).click(); // goes to the case
  await node("wait").waitFor();
  await leave(box("Who may approve"), "finance");
  await leave(box("At most"), "2h");
  await node("branch").click();
  await page.getByRole("button", { name: "Add a case" }).click();
  await page.locator(".inspector .case").nth(1).getByLabel("Case 2: when").waitFor();
  await page.locator(".inspector .case").nth(1).getByLabel("Case 2: when").fill("");
  await page.locator(".inspector .case").nth(1).getByLabel("Case 2: when").press("Tab");
  await page.locator(".inspector .case").nth(1).getByText("else").waitFor();
  await page.getByRole("button", { name: "resize" }).first().click(); // becomes the else
  await node("resize").waitFor();
  await box("Attempts").waitFor({ state: "attached" });
  await page.locator(".inspector").getByText("Attempts, times, order").click();
  await leave(box("Attempts"), "7");
  await page.getByText("None: it can be published.").waitFor();
  await page.getByRole("button", { name: "Dry run" }).click();
  await page.getByLabel("Input", { exact: true }).fill('{"total": 5}');
  await page.getByRole("button", { name: "Try" }).click();
  await page.locator("h2 .state.completed").waitFor();
  await node("wait").locator(".state.skipped").waitFor();
  await node("resize").locator(".state.completed").waitFor();
  await page.getByLabel("Input", { exact: true }).fill('{"total": 500}');
  await page.getByLabel("How wait ends").selectOption("timeout");
  await page.getByRole("button", { name: "Try" }).click();
  await node("wait").locator(".state.failed").waitFor();
  await node("resize").locator(".state.skipped").waitFor();
  await page.getByRole("button", { name: "YAML" }).click();
  const file = await page.locator("textarea[aria-label=YAML]").inputValue();
  await page.getByRole("button", { name: "YAML" }).click();
  await page.getByRole("button", { name: "Publish" }).click();
  await page.waitForURL("**/flows/forms");
  const flow = await server.get("/api/flows/forms");
  assert.equal(flow.source, file);
  assert.deepEqual(flow.steps.map((s) => [s.id, s.needs ?? [], s.cases ?? []]), [
    ["welcome", [], []], ["branch", ["welcome"], [{ when: "input.total > 100", to: ["wait"] }, { to: ["resize"] }]], ["wait", [], []], ["resize", [], []],
  ]);
  assert.match(file, /role: finance/);
  assert.match(file, /attempts: 7/);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("a run that waits for an approval is approved by the button, and goes on to its end", async () => {
  const source = "flow: ask\nsteps:\n  ask: {wait: {approval: {role: ops}, timeout: 1d}}\n  bye: {use: welcome, queue: mail, needs: ask, with: {to: \"${steps.ask.output.by}\"}}\n";
  const r = await fetch(server.url + "/api/flows/ask", { method: "PUT", headers: { Authorization: "Bearer " + server.token, "Content-Type": "application/yaml" }, body: source });
  assert.equal(r.status, 200, await r.text());
  const { runId } = await server.post("/api/flows/ask/runs", { input: {} });
  const page = await open(chrome);
  await page.goto(server.url + "/runs/" + runId);
  await page.getByRole("status").getByRole("button", { name: "ask", exact: true }).click();
  await page.getByRole("button", { name: "Approve", exact: true }).click();
  await page.locator("h1 .state.completed").waitFor(); // told by the stream
  const run = await server.get("/api/runs/" + runId);
  assert.deepEqual(run.steps.map((s) => [s.id, s.state]), [["ask", "completed"], ["bye", "completed"]]);
  assert.equal(run.steps[0].output.approved, true);
  assert.match(JSON.stringify((await server.get("/api/audit?limit=20")).items), new RegExp(`runs/${runId}/approve`));
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

// typed enters a text key by key, as fast as it goes.
async function typed(page, field, text) {
  await field.click();
  await page.keyboard.press("Control+a");
  await page.keyboard.type(text);
  await page.keyboard.press("Tab");
}

test("whoever types fast on a slow machine loses no key, in no field; a step is renamed, and what was drawn is there again", async () => {
  const page = await open(chrome);
  await page.goto(server.url + "/flows/fast/edit");
  const box = (name) => page.locator(".inspector").getByLabel(name, { exact: true });
  const node = (id) => page.locator(`.react-flow__node[data-id="${id}"]`);
  await page.getByRole("button", { name: "welcome" }).click();
  await node("welcome").waitFor();
  await page.getByRole("button", { name: "Wait for an event" }).click();
  await node("event").waitFor();
  await box("Type of the event").waitFor();
  const cdp = await page.context().newCDPSession(page);
  await cdp.send("Emulation.setCPUThrottlingRate", { rate: 4 });
  await typed(page, box("Title"), "Paid, at last");
  await typed(page, box("Type of the event"), "order.paid.for");
  await typed(page, box("Which of them"), "event.id == input.id");
  await typed(page, box("At most"), "36h");
  await typed(page, box("When"), "input.n > 1");
  await typed(page, box("Id"), "paid_at_last"); // while what was typed before is still on its way
  await node("paid_at_last").waitFor({ timeout: 60_000 });
  await node("welcome").click();
  await typed(page, box("Title"), "Say hello");
  await typed(page, box("What it gets"), '{"exact": 1234567890123456789}');
  await page.locator(".inspector").getByText("Attempts, times, order").click();
  for (const [name, text] of [["Attempts", "17"], ["Timeout", "90s"], ["Group", "${input.id}"]]) await typed(page, box(name), text);
  await cdp.send("Emulation.setCPUThrottlingRate", { rate: 1 });
  await page.getByRole("button", { name: "YAML" }).click(); // all of it is on its way there
  const text = page.locator("textarea[aria-label=YAML]");
  const wanted = [
    "title: Paid, at last", "type: order.paid.for", "match: event.id == input.id", "timeout: 36h", "when: input.n > 1", "paid_at_last:",
    "title: Say hello", "exact: 1234567890123456789", "attempts: 17", "timeout: 90s", "group: ${input.id}",
  ];
  await eventually("every character is in the file", async () => {
    const file = (await text.inputValue()).replaceAll('"', "");
    return wanted.every((w) => file.includes(w));
  }, 60).catch(async (e) => { throw new Error(e.message + "\n" + (await text.inputValue())); });
  const file = await text.inputValue();
  await page.goto(server.url + "/flows");
  await page.goto(server.url + "/flows/fast/edit?pane=yaml");
  await page.getByText("what you drew and did not publish").waitFor();
  assert.equal(await text.inputValue(), file);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});

test("a document of Open Workflow becomes a flow, with what cannot cross, and a flow a document", async () => {
  const page = await open(chrome);
  await page.goto(server.url + "/flows");
  await page.getByRole("button", { name: "Import…" }).click();
  const dialog = page.getByRole("dialog");
  const file = (name, text) => dialog.getByLabel("File").setInputFiles({ name, mimeType: "application/yaml", buffer: Buffer.from(text) });
  await file("wrong.yaml", "document: {dsl: 1.0.3, namespace: a, name: crossed, version: 0.1.0}\ndo: [{a: {run: {shell: {command: ls}}}}]\n");
  await dialog.getByText("a run is read that is of a workflow").waitFor();
  assert.ok(await dialog.getByRole("button", { name: "Draw it" }).isDisabled());
  await file("crossed.yaml", "document: {dsl: 1.0.3, namespace: a, name: crossed, version: 0.1.0, tags: {a: b}}\ndo: [{first: {call: welcome}}, {then: {wait: PT1M}}]\n");
  await dialog.getByText("tags is left out").waitFor();
  await dialog.getByRole("button", { name: "Draw it" }).click();
  await page.waitForURL("**/flows/crossed/edit");
  await eventually("it is drawn", async () => (await page.locator(".react-flow__node").count()) === 2);
  await page.getByRole("button", { name: "Export…" }).click();
  await dialog.getByText("All of it crosses.").waitFor();
  const [saved] = await Promise.all([page.waitForEvent("download"), dialog.getByRole("button", { name: "Save the file" }).click()]);
  assert.equal(saved.suggestedFilename(), "crossed.openworkflow.yaml");
  assert.match(await dialog.locator("pre").textContent(), /call: welcome/);
  assert.deepEqual(await faults(page), []);
  assert.deepEqual(page.wrong, []);
  await page.context().close();
});
