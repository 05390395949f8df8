// What the tests of the parts without a page look at. No page loads it.
export { Exact, parse, print } from "./api/json";
import first from "./i18n/en";
import lists from "./i18n/en.lists";

export const en = { ...first, ...lists };
export { default as zh } from "./i18n/zh-CN";
export * as edits from "./flow/edits";
export { diff } from "./ui/diff";
export { quote, suggest, termAt } from "./ui/filter";
export { sample } from "./ui/live";
export { life } from "./ui/waterfall";
export { countsOf } from "./pages/ingest";
