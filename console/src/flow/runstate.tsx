import type { RunInfo } from "../api/types";
import { useT } from "../i18n";

// RunState tells how a run is, by colour, sign and word.
export function RunState({ run }: { run: { state: RunInfo["state"]; paused?: boolean } }) {
  const t = useT();
  const as: Record<string, string> = { running: "active", failing: "dead", undoing: "delayed", completed: "completed", failed: "dead", cancelled: "cancelled" };
  const signs: Record<string, string> = { running: "◐", failing: "✕", undoing: "↶", completed: "●", failed: "✕", cancelled: "⊘" };
  return <span class={"state " + as[run.state]}><span aria-hidden="true">{run.paused ? "‖" : signs[run.state]}</span>{run.paused ? t("queue.paused") : t(`run.${run.state}`)}</span>;
}
