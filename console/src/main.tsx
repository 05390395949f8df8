import { render } from "preact";
import { whoAmI } from "./api/client";
import { App } from "./app";
import { speak, wanted } from "./i18n";
import { follow } from "./router";
import "./style.css";
import { showTheme } from "./theme";
import { begin } from "./ui/live";

showTheme();
document.addEventListener("click", follow);
await Promise.all([speak(wanted(), false), whoAmI()]);
render(<App />, document.getElementById("app")!);
begin();
