import { useEffect, useLayoutEffect, useRef, useState, type ReactNode } from "react";
import type { ComponentChildren } from "preact";

export interface At {
  key: string | number;
  "aria-rowindex": number;
  "data-at": number;
}

const drawnWhole = 100; // rows of a list that is drawn as a whole
const beyond = 800; // px that are drawn above and below what is seen
const step = 200;

// Table shows rows of which only those near what is seen are there. It is the page that is
// scrolled. Readers of screens are told how many there are and which one it is; the row that
// has the focus stays, wherever the page is scrolled to.
export function Table<T>({ items, id, head, row, name, more, end, open }: {
  items: T[];
  id: (item: T) => string | number;
  head: ComponentChildren; // the cells of the heading
  row: (item: T, at: At) => ReactNode;
  name?: string;
  more?: boolean; // there are more than items
  end?: () => void; // the end is near
  open?: string | number; // the one whose row shows more: a second tr with the same data-at
}) {
  const table = useRef<HTMLTableElement>(null);
  const body = useRef<HTMLTableSectionElement>(null);
  const sizes = useRef(new Map<string | number, number>());
  const usual = useRef(0);
  const [view, setView] = useState(() => ({ from: 0, to: innerHeight + beyond }));
  const [pinned, pin] = useState<string | number>();
  const opened = useRef<string | number | undefined>(undefined);
  const long = items.length > drawnWhole;

  useEffect(() => {
    if (!long && !more) return;
    let frame = 0;
    const look = () => {
      frame = 0;
      const top = body.current?.getBoundingClientRect().top ?? 0;
      const from = Math.floor((-top - beyond) / step) * step;
      const to = Math.ceil((-top + innerHeight + beyond) / step) * step;
      setView((old) => (old.from === from && old.to === to ? old : { from, to }));
    };
    const soon = () => { frame ||= requestAnimationFrame(look); };
    const anew = () => { sizes.current.clear(); usual.current = 0; if (long) widths(table.current!); soon(); };
    if (long) widths(table.current!);
    soon();
    addEventListener("scroll", soon, { passive: true });
    addEventListener("resize", anew);
    return () => { cancelAnimationFrame(frame); removeEventListener("scroll", soon); removeEventListener("resize", anew); loosen(table.current); };
  }, [long, more]);

  const rows: ReactNode[] = [];
  const height = usual.current || 52;
  let y = 0;
  let gap = 0;
  for (let i = 0; i < items.length; i++) {
    const key = id(items[i]);
    const h = sizes.current.get(key) ?? height;
    if (!long || (y + h > view.from && y < view.to) || key === pinned) {
      if (gap > 0) rows.push(<Gap key={"gap" + i} height={gap} />);
      gap = 0;
      rows.push(row(items[i], { key, "aria-rowindex": i + 2, "data-at": i }));
    } else gap += h;
    y += h;
  }
  if (gap > 0) rows.push(<Gap key="gap" height={gap} />);

  useLayoutEffect(() => {
    if (!long && !more) return; // where the end is depends on it too
    let sum = 0;
    let n = 0;
    for (const key of opened.current === open ? [] : [opened.current, open]) if (key !== undefined) sizes.current.delete(key);
    opened.current = open;
    const asked = new Set<string | number>(); // now: what is open has two parts
    for (const tr of body.current!.querySelectorAll<HTMLElement>("tr[data-at]")) {
      const item = items[Number(tr.dataset.at)];
      if (item === undefined) continue;
      const key = id(item);
      if (sizes.current.has(key) && !asked.has(key)) continue; // to ask for a size makes the page be laid out
      asked.add(key);
      sizes.current.set(key, (sizes.current.get(key) ?? 0) + tr.offsetHeight);
      if (key === open) continue;
      sum += tr.offsetHeight;
      n++;
    }
    if (usual.current === 0 && n > 0) usual.current = sum / n; // once: or all would move with each look
  });
  useEffect(() => {
    if (more && end && view.to - beyond > y - innerHeight) end(); // one screen before it
  }, [view, items.length, more]);

  return (
    <div class="scroll" data-rows>
      <table ref={table} class={name} aria-rowcount={more ? -1 : items.length + 1}>
        <thead><tr aria-rowindex={1}>{head}</tr></thead>
        <tbody ref={body} onFocusIn={(e) => pin(keyAt(e.target as Element, items, id))}>{rows}</tbody>
      </table>
    </div>
  );
}

function keyAt<T>(e: Element, items: T[], id: (item: T) => string | number) {
  const at = e.closest<HTMLElement>("tr[data-at]")?.dataset.at;
  return at === undefined ? undefined : id(items[Number(at)]);
}

function Gap({ height }: { height: number }) {
  return <tr aria-hidden="true" class="gap"><td colSpan={20} style={{ height: `${height}px` }} /></tr>;
}

// widths holds the columns as wide as they are, or they would move as rows come and go.
function widths(table: HTMLTableElement) {
  loosen(table);
  const cells = [...table.querySelectorAll("th")].map((th) => [th, th.offsetWidth] as const);
  const whole = table.offsetWidth;
  if (whole === 0) return;
  for (const [th, w] of cells) if (w > 0) th.style.width = `${(w / whole) * 100}%`;
  table.style.tableLayout = "fixed";
}

function loosen(table: HTMLTableElement | null) {
  if (!table) return;
  table.style.tableLayout = "";
  for (const th of table.querySelectorAll("th")) th.style.width = "";
}
