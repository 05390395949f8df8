// The designer: forms of schemas, completion, what is moved, grouped, copied and found;
// versions compared, gone back to and approved; runs looked back at.
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { faults } from "./look.mjs";
import { browser, eventually, open, Server } from "./server.mjs";

let server, chrome, page;

before(async () => {
  [server, chrome] = await Promise.all([Server.start(), browser()]);
  page = await open(chrome);
});
after(async () => {
  await chrome?.close();
  await server?.stop();
});

const node = (id) => page.locator(`.react-flow__node[data-id="${id}"]`);
const box = (name) => page.locator(".inspector").getByLabel(name, { exact: true });
// sound: nothing but warnings is told of what is drawn.
const sound = () => eventually("it is sound", async () => (await page.locator(".problems li.bad").count()) === 0 && (await page.getByRole("button", { name: "Publish" }).isEnabled()));
const leave = (field, text) => field.fill(text).then(() => field.press("Tab"));

const put = (name, body) => fetch(`${server.url}/api/flows/${name}`, { method: "PUT", headers: { Authorization: "Bearer " + server.token, "Content-Type": "application/yaml" }, body }).then(async (r) => { if (!r.ok) throw new Error(await r.text()); return r.json(); });

test("the form of a step is made of what its handler says that it takes; expressions are completed and shown", async () => {
  await server.call("PUT", "/api/queues/parcels/handlers/ship", {
    title: "Send a parcel",
    data: {
      type: "object", required: ["to", "weight"],
      properties: {
        to: { type: "string", title: "Address", description: "Where it goes." }, weight: { type: "integer", title: "Weight" }, speed: { enum: ["slow", "fast"], default: "slow", title: "Speed" },
        fragile: { type: "boolean", title: "Fragile" }, parts: { type: "array", title: "Parts", items: { type: "string" } }, from: { type: "object", title: "From", properties: { city: { type: "string", title: "City" } } },
      },
    },
    result: { type: "object", properties: { number: { type: "string" } } },
  });
  await put("parcels", "flow: parcels\ninput: {type: object, properties: {address: {type: string}, grams: {type: integer}}}\nsteps:\n  hello: {use: welcome, queue: mail, with: {}}\n");
  await page.goto(server.url + "/flows/parcels/edit?step=hello");
  await page.getByRole("button", { name: "ship Send a parcel" }).click();
  await node("ship").waitFor();
  await page.getByText("missing properties 'to', 'weight'").or(page.getByText("missing property 'to'")).first().waitFor(); // the problem has its place
  const to = box("Address *");
  await to.click();
  await page.keyboard.type("${input.ad");
  await page.getByRole("option", { name: "input.address string" }).waitFor();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await page.keyboard.type("}");
  await page.locator(".preview", { hasText: '= "text"' }).waitFor(); // the sample's
  await page.keyboard.press("Tab");
  await leave(box("Weight *"), "1200");
  await page.locator(".inspector").getByRole("combobox", { name: "Speed", exact: true }).selectOption({ label: "fast" });
  await page.locator(".inspector").getByRole("combobox", { name: "Fragile", exact: true }).selectOption({ label: "true" });
  await page.getByRole("button", { name: "Add to Parts" }).click();
  await leave(box("1"), "lid");
  await leave(box("City"), "Ulm");
  await sound();
  await leave(box("Weight *"), "heavy");
  await page.getByText("weight does not fit what ship says that it takes: got string, want integer").waitFor();
  await leave(box("Weight *"), "${input.grams}");
  await sound();
  assert.deepEqual(await faults(page), []);
  await page.getByRole("group", { name: "Shown as" }).getByRole("button", { name: "JSON" }).click();
  assert.deepEqual(JSON.parse(await box("JSON").inputValue()), { to: "${input.address}", weight: "${input.grams}", speed: "fast", fragile: true, parts: ["lid"], from: { city: "Ulm" } });
  await page.getByRole("button", { name: "Publish" }).click();
  await page.waitForURL("**/flows/parcels");
  await page.getByRole("button", { name: "Run", exact: true }).click(); // the input's form is made of its schema too
  const dialog = page.getByRole("dialog");
  await dialog.getByLabel("address").fill("Main Street 1");
  await dialog.getByLabel("grams").fill("7");
  await dialog.getByRole("button", { name: "Run", exact: true }).click();
  await page.waitForURL("**/runs/*");
  assert.deepEqual((await server.get("/api/runs/" + page.url().split("/").pop())).input, { address: "Main Street 1", grams: 7 });
  assert.deepEqual(page.wrong, []);
});

const shop = "flow: shop # kept\nsteps:\n  hello: {use: welcome, queue: mail, with: {to: ann}}\n  pay: {use: charge, queue: billing, needs: hello, with: {to: \"${steps.hello.output.sent}\"}}\n  bye: {use: welcome, queue: mail, needs: pay}\n";
const clipboard = (kind, text) => page.evaluate(([kind, text]) => {
  const data = new DataTransfer();
  if (text) data.setData("text/plain", text);
  document.body.dispatchEvent(new ClipboardEvent(kind, { clipboardData: data, bubbles: true, cancelable: true }));
  return data.getData("text/plain");
}, [kind, text]);

test("steps are moved, grouped, noted, found, copied into another flow; none of it but the steps changes what runs", async () => {
  await put("shop", shop);
  await page.goto(server.url + "/flows/shop/edit");
  await node("bye").waitFor();
  const [b, pane] = [await node("bye").boundingBox(), await page.locator(".react-flow").boundingBox()];
  await page.mouse.move(b.x + 60, b.y + 30);
  await page.mouse.down();
  await page.mouse.move(pane.x + 120, pane.y + pane.height - 60, { steps: 4 });
  await page.mouse.up();
  const again = page.getByRole("button", { name: "Arrange again" });
  await eventually("it can be arranged again", () => again.isEnabled());
  await page.getByRole("button", { name: "Add a note" }).click();
  const note = page.getByRole("textbox", { name: "Note" });
  await note.fill("money goes here");
  await note.press("Tab");
  await page.getByRole("searchbox", { name: "Find a step" }).fill("charge");
  await page.keyboard.press("Enter");
  await page.locator(".inspector h2", { hasText: "pay" }).waitFor();
  await node("hello").click({ modifiers: ["Shift"] });
  await page.getByText("Chosen: 2").waitFor();
  const text = await clipboard("copy");
  assert.deepEqual(Object.keys(JSON.parse(text).steps).sort(), ["hello", "pay"]);
  await page.getByRole("button", { name: "Group what is chosen" }).click();
  await page.getByRole("button", { name: "What is in Group" }).click();
  await node("pay").waitFor({ state: "detached" });
  assert.deepEqual(await faults(page), []);
  await page.getByRole("button", { name: "Publish" }).click();
  await page.waitForURL("**/flows/shop");
  await page.locator(".react-flow__node-frame").waitFor();
  const flow = await server.get("/api/flows/shop");
  assert.equal(flow.version, 1);
  assert.match(flow.source, /# kept/);
  assert.equal(typeof flow.layout.steps.bye.x, "number");
  assert.equal(flow.layout.notes.note1.text, "money goes here");
  assert.deepEqual(flow.layout.groups.group1, { title: "Group", steps: ["pay", "hello"], collapsed: true });
  await page.goto(server.url + "/flows/other/edit");
  await page.getByText("Drag a handler here", { exact: false }).or(page.locator(".empty.graph")).first().waitFor();
  await clipboard("paste", text);
  await node("pay").waitFor();
  await clipboard("paste", text); // the same once more: under other ids, that name each other
  await node("pay_2").waitFor();
  await page.getByRole("button", { name: "YAML" }).click();
  const file = await page.locator("textarea[aria-label=YAML]").inputValue();
  assert.match(file, /pay_2:[^]*needs: "?hello_2[^]*steps\.hello_2\.output\.sent/);
  await page.getByRole("button", { name: "YAML" }).click();
  await node("pay_2").click();
  await clipboard("cut");
  await node("pay_2").waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Undo" }).click();
  await node("pay_2").waitFor();
  assert.deepEqual(page.wrong, []);
});

test("on a phone steps are cut, copied and pasted by buttons, which name their keys", async () => {
  const phone = await open(chrome, { viewport: { width: 360, height: 740 }, hasTouch: true });
  await phone.goto(server.url + "/flows/shop/edit");
  const step = (id) => phone.getByRole("checkbox", { name: "Choose " + id, exact: true });
  const bar = phone.getByRole("toolbar");
  const button = (name, key) => bar.getByRole("button", { name, exact: true }).and(phone.getByTitle(key));
  await step("pay").check();
  await step("bye").check();
  await button("Copy", "Ctrl+C").tap();
  await phone.getByText("Copied: 2").waitFor();
  await button("Paste", "Ctrl+V").tap();
  await step("pay_2").waitFor();
  await eventually("what was pasted is chosen", () => step("bye_2").isChecked());
  await button("Cut", "Ctrl+X").tap();
  await step("bye_2").waitFor({ state: "detached" });
  await step("pay_2").waitFor({ state: "detached" });
  await button("Paste", "Ctrl+V").tap();
  await step("pay_2").waitFor();
  assert.deepEqual(phone.wrong, []);
  await phone.context().close();
});

test("two versions are compared, drawn and as text, and an old one is gone back to with a reason", async () => {
  await put("shop", shop.replace("to: ann", "to: bob").replace("bye: {use: welcome", "bye: {use: resize").replace("queue: mail, needs: pay", "queue: media, needs: pay"));
  await page.goto(server.url + "/flows/shop?tab=versions");
  await page.getByRole("radio", { name: "From version 1" }).check();
  await page.getByRole("radio", { name: "To version 2" }).check();
  await eventually("two steps are marked", async () => (await page.locator(".step.marked.changed").count()) === 2);
  const lines = page.locator("pre.diff");
  await lines.locator(".minus", { hasText: "to: ann" }).waitFor();
  await lines.locator(".plus", { hasText: "to: bob" }).waitFor();
  assert.deepEqual(await faults(page), []);
  await page.getByRole("row", { name: /Version 1/ }).getByRole("button", { name: "Go back to it" }).click();
  await page.getByRole("dialog").getByLabel("Reason").fill("bob is on holiday");
  await page.getByRole("dialog").getByRole("button", { name: "Go back to it" }).click();
  await page.getByRole("row", { name: /Version 3/ }).getByText("bob is on holiday").waitFor();
  const [first, third] = [await server.get("/api/flows/shop?version=1"), await server.get("/api/flows/shop")];
  assert.equal(third.source, first.source);
  assert.match(JSON.stringify((await server.get("/api/audit?limit=20")).items), /bob is on holiday/);
  assert.deepEqual(page.wrong, []);
});

test("a run is looked back at as it was; the heat map shows what took long and what failed", async () => {
  await put("back", "flow: back\nsteps:\n  hello: {use: welcome, queue: mail, with: {to: ann}}\n  fork: {parallel: [pay], needs: hello}\n  pay: {use: charge, queue: billing, with: {do: refuse, why: no}, on_failure: skip}\n");
  const { runId } = await server.post("/api/flows/back/runs", { input: {} });
  await eventually("it ends", async () => (await server.get("/api/runs/" + runId)).state === "completed");
  await page.goto(server.url + "/runs/" + runId);
  const slider = page.getByRole("slider", { name: "At a time" });
  await slider.focus();
  await page.keyboard.press("Home");
  await page.getByText("before its first step").waitFor();
  await eventually("nothing has begun", async () => (await page.locator(".react-flow__node .state.blocked").count()) === 3);
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await page.locator('.react-flow__node[data-id="hello"] .state.active').waitFor();
  assert.equal(await page.locator('.react-flow__node[data-id="pay"] .state.blocked').count(), 1);
  await page.getByRole("button", { name: "As it is now" }).click();
  await page.locator('.react-flow__node[data-id="hello"] .state.completed').waitFor();
  assert.deepEqual(await faults(page), []);
  await page.goto(server.url + "/flows/back?tab=heat");
  await page.locator('.react-flow__node[data-id="hello"] .num', { hasText: "p95" }).waitFor();
  await page.getByRole("button", { name: "Failures" }).click();
  await page.locator('.react-flow__node[data-id="pay"]', { hasText: "failed 1 of 1" }).waitFor();
  assert.deepEqual(page.wrong, []);
});
