import { useEffect, useRef } from "react";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { useT } from "../i18n";

export interface Line {
  name: string;
  colour: string; // a custom property
  fill?: boolean;
}

// Chart draws lines over time. Its colours are those of the page, also after a change
// of the theme.
export function Chart({ lines, data, label, format }: { lines: Line[]; data: (number | null)[][]; label: string; format: (n: number) => string }) {
  const t = useT();
  const box = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | undefined>(undefined);
  const drawn = useRef(data);
  drawn.current = data;
  useEffect(() => {
    const el = box.current!;
    const make = () => {
      plot.current?.destroy();
      const css = getComputedStyle(el);
      const colour = (name: string) => css.getPropertyValue(name).trim();
      const font = "11px " + css.fontFamily;
      plot.current = new uPlot(
        {
          width: el.clientWidth, height: 150,
          padding: [8, 4, 0, 0],
          cursor: { y: false, points: { size: 6 } },
          legend: { show: false },
          scales: { x: { time: true, range: (_, min, max) => [Math.min(min, max - 60), max] }, y: { range: (_, __, max) => [0, Math.max(max * 1.15, 1)] } },
          axes: [
            { stroke: colour("--dim"), font, grid: { show: false }, ticks: { show: false }, size: 24, space: 90, values: (_, at) => at.map((s) => new Date(s * 1000).toLocaleTimeString(t.lang, { hour12: false })) },
            { stroke: colour("--dim"), font, grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, size: 46, space: 36, values: (_, at) => at.map(format) },
          ],
          series: [{}, ...lines.map((l) => ({ label: l.name, stroke: colour(l.colour), width: 1.75, fill: l.fill ? colour(l.colour + "-soft") : undefined, points: { show: false } }))],
        },
        drawn.current as uPlot.AlignedData, el,
      );
    };
    make();
    const resize = new ResizeObserver(() => {
      if (plot.current && el.clientWidth > 0 && plot.current.width !== el.clientWidth) plot.current.setSize({ width: el.clientWidth, height: 150 });
    });
    resize.observe(el);
    const theme = new MutationObserver(make);
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
    return () => {
      resize.disconnect();
      theme.disconnect();
      plot.current?.destroy();
      plot.current = undefined;
    };
  }, [t.lang, lines.map((l) => l.name).join()]);
  useEffect(() => {
    plot.current?.setData(data as uPlot.AlignedData);
  }, [data]);
  const last = (i: number) => {
    const v = data[i + 1]?.at(-1);
    return v === null || v === undefined ? "–" : format(v);
  };
  return (
    <figure class="chart">
      <figcaption>
        <strong>{label}</strong>
        {lines.map((l, i) => (
          <span class="key" key={l.name}>
            <i class={l.colour.slice(2)} />
            {l.name} <b class="num">{last(i)}</b>
          </span>
        ))}
      </figcaption>
      <div ref={box} class="plot" role="img" aria-label={label} />
    </figure>
  );
}
