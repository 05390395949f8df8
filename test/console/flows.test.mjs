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
